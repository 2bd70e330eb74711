//! Supervision of the workload by another process.

use std::sync::atomic::Ordering;

use pagetide_quantity::Nanos;
use pagetide_record::outcome::Invalid;
use pagetide_record::wire::Region;
use pagetide_system::clock::monotonic as now;

use crate::peak::{self, ZswapPeak};

/// Locks the current mappings of this process, so that reclaim does not evict the harness. Later mappings are not
/// locked, because they may belong to the workload.
pub fn lock_what_is_here() {
    lock(libc::MCL_CURRENT);
}

/// Locks current and future pages of this process. Only for a process that maps no memory of the workload.
pub fn lock_everything() {
    lock(libc::MCL_CURRENT | libc::MCL_FUTURE);
}

/// Makes the kernel lock pages of this process when they are first used. `what` selects the mappings: current, future.
fn lock(what: libc::c_int) {
    // SAFETY: changes only how this process' pages are treated.
    unsafe { libc::mlockall(what | libc::MCL_ONFAULT as libc::c_int) };
}

/// Which children a supervisor reaps while it waits for the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reap {
    /// All children: for PID 1, whose children include the orphans of the workload.
    All,
    /// Only the workload: for a process that waits for its other children elsewhere.
    Workload,
}

/// Returns why a workload's result must not be used, given the status that `waitpid` returned for its main process;
/// `None` if the process exited with status 0.
pub fn fault(status: libc::c_int) -> Option<Invalid> {
    let how = if libc::WIFSIGNALED(status) {
        format!("signal {}", libc::WTERMSIG(status))
    } else if libc::WEXITSTATUS(status) != 0 {
        format!("status {}", libc::WEXITSTATUS(status))
    } else {
        return None;
    };
    Some(Invalid::ProcessDied {
        process: "the main process".to_owned(),
        how,
    })
}

/// Waits until the workload has ended, and meanwhile reaps other children if `reap` says so. Updates the clock in the
/// region at least every second, or every [`peak::INTERVAL`] and `peak` with it. If the workload makes no progress for
/// more than `hang_after`, calls `on_hang`, which may make the kernel log the waiting tasks, and kills the workload.
/// `clock` is the name of the clock in the message. Returns the reasons why the result must not be used.
pub fn wait(
    (child, reap): (libc::pid_t, Reap),
    region: &Region,
    (hang_after, clock): (Nanos, &str),
    signals: libc::sigset_t,
    mut peak: Option<&mut ZswapPeak>,
    on_hang: impl Fn(),
) -> Vec<Invalid> {
    let mut pause = libc::timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    if peak.is_some() {
        (pause.tv_sec, pause.tv_nsec) = (0, peak::INTERVAL.0.cast_signed());
    }
    let (mut done, mut since) = (u64::MAX, now());
    let mut invalid = Vec::new();
    loop {
        let mut status = 0;
        let awaited = match reap {
            Reap::All => -1,
            Reap::Workload => child,
        };
        // SAFETY: `status` lives through the call.
        let ended = unsafe { libc::waitpid(awaited, &raw mut status, libc::WNOHANG) };
        if ended == child {
            // For a workload that was killed because it hung, the reason is already known.
            if invalid.is_empty() || libc::WIFEXITED(status) {
                invalid.extend(fault(status));
            }
            return invalid;
        }
        if ended > 0 {
            continue;
        }
        if let Some(peak) = &mut peak {
            peak.look();
        }
        let head = region.head();
        let time = now();
        head.clock.store(time.0, Ordering::Release);
        let steps = head.done.load(Ordering::Acquire);
        if steps == done {
            let span = time.since(since);
            if span > hang_after && invalid.is_empty() {
                invalid.push(Invalid::Hang {
                    span,
                    clock: clock.to_owned(),
                });
                on_hang();
                // SAFETY: kills our child, which has not been reaped.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
        } else {
            (done, since) = (steps, time);
        }
        // SAFETY: the set and the time live through the call; the end of a child wakes it immediately.
        unsafe { libc::sigtimedwait(&raw const signals, std::ptr::null_mut(), &raw const pause) };
    }
}

/// Blocks SIGCHLD, so that the caller can wait for this signal with a timeout. Returns the signal set. Must be called
/// before the child is started, or an early signal would be lost.
pub fn block_child_signal() -> libc::sigset_t {
    // SAFETY: an all-zero set is valid input for `sigemptyset`, and all pointers live through the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    }
}
