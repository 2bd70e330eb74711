//! Dates in UTC and spans of time, as text.

use pagetide_quantity::Nanos;

/// Days from the civil era's start to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;
/// Days of 400 years.
const ERA: u64 = 146_097;

/// A point in time (nanoseconds since 1970) as RFC 3339 with seconds, such as `2026-11-20T20:39:40Z`. The calendar is
/// Howard Hinnant's `civil_from_days` (<https://howardhinnant.github.io/date_algorithms.html>).
pub fn utc(at: Nanos) -> String {
    let seconds = at.0 / 1_000_000_000;
    let (days, rest) = (seconds / 86_400 + EPOCH_DAYS, seconds % 86_400);
    let (era, day) = (days / ERA, days % ERA);
    let year_of_era = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A time to plan by: seconds below two minutes, then minutes, hours and days.
pub fn about(time: Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        7200..172_800 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// How long ago a moment (nanoseconds since 1970) was.
pub fn ago(moment: Nanos) -> String {
    let passed = Nanos::wall_clock().0.saturating_sub(moment.0);
    format!("{} ago", about(Nanos(passed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_as_a_person_plans_by_them() {
        assert_eq!(about(Nanos(1)), "1 s");
        assert_eq!(about(Nanos::from_secs(119)), "119 s");
        assert_eq!(about(Nanos::from_secs(121)), "3 min");
        assert_eq!(about(Nanos::from_secs(7260)), "2 h 1 min");
        assert_eq!(about(Nanos::from_secs(200_000)), "2 days");
    }

    #[test]
    fn dates_agree_with_the_calendar() {
        let at = |seconds: u64| utc(Nanos::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(at(1_795_207_180), "2026-11-20T20:39:40Z");
    }
}
