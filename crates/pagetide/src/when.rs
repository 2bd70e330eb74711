//! Times as a person says them.

use std::time::SystemTime;

use pagetide_quantity::Nanos;

/// Nanoseconds since 1970.
pub fn now() -> Nanos {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Nanos(since.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
}

/// A time to plan by: seconds below two minutes, then minutes, then hours.
pub fn about(time: Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        7200..172_800 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// How long ago a moment was.
pub fn ago(moment: Nanos) -> String {
    format!("{} ago", about(Nanos(now().0.saturating_sub(moment.0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_a_person_plans_by_them() {
        assert_eq!(about(Nanos(1)), "1 s");
        assert_eq!(about(Nanos::from_secs(119)), "119 s");
        assert_eq!(about(Nanos::from_secs(121)), "3 min");
        assert_eq!(about(Nanos::from_secs(7260)), "2 h 1 min");
        assert_eq!(about(Nanos::from_secs(200_000)), "2 days");
    }
}
