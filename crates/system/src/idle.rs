//! Counters that show whether CPUs were idle: `/proc/timer_list` and `/proc/stat`.

use std::fs;

/// The text of `/proc/timer_list`; empty if it cannot be read.
pub struct Timers(String);

impl Timers {
    /// Reads the current `/proc/timer_list`.
    pub fn now() -> Self {
        Self(fs::read_to_string("/proc/timer_list").unwrap_or_default())
    }

    /// Returns how often CPUs entered idle, summed over CPUs; `None` if the file has no such line.
    pub fn idle_calls(&self) -> Option<u64> {
        self.values(".idle_calls").reduce(u64::wrapping_add)
    }

    /// Returns true if any CPU has high-resolution timers.
    pub fn are_fine(&self) -> bool {
        self.values(".hres_active").any(|value| value == 1)
    }

    /// Returns the values of all lines with the counter `name`, such as 41 for `.idle_calls : 41`.
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = u64> + 'a {
        self.0.lines().filter_map(move |line| {
            let rest = line.trim().strip_prefix(name)?.trim_start();
            rest.strip_prefix(':')?.trim().parse().ok()
        })
    }
}

/// Returns idle plus I/O-wait time of all CPUs, from `/proc/stat`, in clock ticks; 0 if the file cannot be read.
pub fn ticks() -> u64 {
    ticks_of(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// Returns the sum of idle and iowait, the fourth and fifth number of the `cpu` line of `/proc/stat`.
fn ticks_of(stat: &str) -> u64 {
    stat.lines()
        .find(|line| line.starts_with("cpu "))
        .map_or(0, |line| {
            line.split_whitespace()
                .skip(4)
                .take(2)
                .filter_map(|n| n.parse::<u64>().ok())
                .sum()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_read_from_timer_list_and_stat() {
        let timers =
            Timers("  .nohz_mode      : 2\n  .idle_calls     : 41\n  .hres_active    : 1\n".into());
        assert_eq!(timers.idle_calls(), Some(41));
        assert!(timers.are_fine());
        let none = Timers("nothing".into());
        assert_eq!((none.idle_calls(), none.are_fine()), (None, false));
        assert_eq!(ticks_of("cpu  1 2 3 40 5 6\ncpu0 1 2 3 40 5 6\n"), 45);
    }
}
