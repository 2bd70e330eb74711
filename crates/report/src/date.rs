//! Dates in UTC and durations as text.

use std::time::Duration;

use pagetide_quantity::Nanos;

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;
/// Number of days in a period of 400 years, after which the calendar repeats.
const ERA: u64 = 146_097;

/// Formats a time (nanoseconds since 1970) as RFC 3339 with seconds, such as `2026-11-20T20:39:40Z`. The calendar
/// algorithm is Howard Hinnant's `civil_from_days` (<https://howardhinnant.github.io/date_algorithms.html>).
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

/// Returns the time since a moment (nanoseconds since 1970), such as `5 min ago`. A moment in the future counts as now.
pub fn ago(moment: Nanos) -> String {
    let passed = Nanos::wall_clock().0.saturating_sub(moment.0);
    format!("{} ago", Nanos(passed).about())
}

/// Parses a time from seconds since 1970 (`1777636800.25`) or a date with a time (`2026-05-01T12:00:00Z`, also with a
/// space, without the `Z`, or with an offset such as `+02:00`). `None` if it is neither, or before 1970.
pub fn parse(text: &str) -> Option<Nanos> {
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        let seconds = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
        return u64::try_from(seconds.as_nanos()).ok().map(Nanos);
    }
    let (date, time) = text.split_once(['T', ' '])?;
    let [year, month, day] = numbers(date, '-')?;
    let (time, offset) = match time.find(['Z', '+', '-']) {
        Some(place) => time.split_at(place),
        None => (time, "Z"),
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    let is_valid = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid {
        return None;
    }
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let seconds = days(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second;
    let seconds = match offset.split_at_checked(1)? {
        ("Z", "") => seconds,
        (sign, rest) => {
            let [hours, minutes] = numbers(rest, ':')?;
            let offset = hours * 3600 + minutes * 60;
            match sign {
                "+" => seconds.checked_sub(offset)?,
                "-" => seconds + offset,
                _ => return None,
            }
        }
    };
    let exact = Duration::from_secs(seconds) + Duration::try_from_secs_f64(fraction).ok()?;
    u64::try_from(exact.as_nanos()).ok().map(Nanos)
}

/// Parses exactly `COUNT` numbers below 10,000 between separators; otherwise `None`.
fn numbers<const COUNT: usize>(text: &str, between: char) -> Option<[u64; COUNT]> {
    let all: Vec<u64> = text
        .split(between)
        .map(|part| part.parse().ok().filter(|number| *number < 10_000))
        .collect::<Option<_>>()?;
    all.try_into().ok()
}

/// Returns the days from 1970-01-01 to a date (Howard Hinnant's `days_from_civil`); `None` for an earlier date.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted = (month + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * ERA + day_of_era).checked_sub(EPOCH_DAYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for seconds in [0, 951_782_399, 951_782_400, 4_107_542_400, 1_795_207_180] {
            let at = Nanos::from_secs(seconds);
            assert_eq!(parse(&utc(at)), Some(at));
            assert_eq!(parse(&seconds.to_string()), Some(at));
        }
        let noon = parse("2026-05-01T12:00:00Z").unwrap();
        assert_eq!(parse("2026-05-01 14:00:00+02:00"), Some(noon));
        assert_eq!(
            parse("2026-05-01T12:00:00.5"),
            Some(Nanos(noon.0 + 500_000_000))
        );
        for wrong in [
            "",
            "soon",
            "2026-13-01T00:00:00Z",
            "2026-05-01",
            "1.2.3",
            "2026-05-01T12:00Zulu",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
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
