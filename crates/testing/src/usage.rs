//! What this process has used of the machine.

use std::time::Duration;

/// Returns the processor time of all children of this process that have ended, with theirs.
pub fn processor_of_children() -> Duration {
    // SAFETY: zeros are a valid value, which the call overwrites.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |time: libc::timeval| {
        let part = |number: i64| u64::try_from(number).unwrap_or(0);
        Duration::from_secs(part(time.tv_sec)) + Duration::from_micros(part(time.tv_usec))
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}
