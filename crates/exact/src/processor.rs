//! Pins each emulator to a CPU of the host that no other emulator uses.
//!
//! An emulator has two threads that take turns: one runs the guest, the other does its input and output. If the threads
//! wake up on different CPUs, each finds the other's data in the wrong cache, and a sleeping CPU must be woken first.
//! With both threads on one CPU, two trials in parallel take a seventh less time. The guest's results do not depend on
//! the CPU.
//!
//! CPUs are reserved for the whole machine, across processes, by locking a file that the kernel provides for each CPU.
//! If all are reserved, or the files cannot be locked, the scheduler places the emulator.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A reserved CPU, released when dropped. The kernel releases it however the process ends.
#[derive(Debug)]
#[must_use]
pub struct Processor {
    number: usize,
    _lock: File,
}

impl Processor {
    /// Reserves a CPU on which this process may run and that is not reserved. Prefers the first hardware thread of each
    /// core, and among these the fastest CPU. `None` if no CPU is free.
    pub fn take() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let mut all: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&number| allowed.is_set(number))
            .collect();
        all.sort_by_cached_key(|&number| rank(number));
        all.into_iter().find_map(Self::lock)
    }

    /// Reserves the CPU with this number; `None` if it is already reserved or cannot be locked.
    fn lock(number: usize) -> Option<Self> {
        let lock = File::open(folder(number).join("uevent")).ok()?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self {
            number,
            _lock: lock,
        })
    }

    /// Runs `what` on this CPU only. Child processes started by `what` stay on the CPU too.
    pub fn on<T>(&self, what: impl FnOnce() -> T) -> T {
        let before = sched_getaffinity(None);
        let mut only = CpuSet::new();
        only.set(self.number);
        // If pinning fails, the scheduler chooses the processor.
        let moved = sched_setaffinity(None, &only);
        let done = what();
        if let (Ok(before), Ok(())) = (before, moved) {
            let _ = sched_setaffinity(None, &before);
        }
        done
    }
}

fn folder(number: usize) -> PathBuf {
    Path::new("/sys/devices/system/cpu").join(format!("cpu{number}"))
}

/// Returns the sort key of a CPU, such that the best comes first. Unknown attributes count as equal.
fn rank(number: usize) -> (bool, Reverse<u64>) {
    let read = |name: &str| fs::read_to_string(folder(number).join(name)).ok();
    // The list has a form such as "0,4" or "0-1".
    let first = read("topology/thread_siblings_list")
        .and_then(|list| list.split([',', '-']).next()?.trim().parse().ok())
        .unwrap_or(number);
    let hertz = read("cpufreq/cpuinfo_max_freq")
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    (first != number, Reverse(hertz))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_run_on() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    #[test]
    fn nobody_has_a_processor_that_another_has() {
        let allowed = may_run_on();
        // Other processes may hold some processors now.
        let mine: Vec<Processor> = std::iter::from_fn(Processor::take).collect();
        for (place, processor) in mine.iter().enumerate() {
            assert!(allowed.is_set(processor.number));
            assert!(Processor::lock(processor.number).is_none());
            assert!(mine[..place].iter().all(|p| p.number != processor.number));
        }
    }

    #[test]
    fn a_child_stays_where_it_was_started_and_the_thread_may_run_as_before() {
        let before = may_run_on();
        let number = (0..CpuSet::MAX_CPU)
            .rfind(|&number| before.is_set(number))
            .unwrap();
        // The processor is not locked, because only `on` is tested.
        let processor = Processor {
            number,
            _lock: File::open("/dev/null").unwrap(),
        };
        let child = processor.on(|| {
            std::process::Command::new("grep")
                .args(["Cpus_allowed_list", "/proc/self/status"])
                .output()
        });
        let seen = String::from_utf8(child.unwrap().stdout).unwrap();
        assert_eq!(
            seen.split_whitespace().last(),
            Some(&*number.to_string()),
            "{seen}"
        );
        assert_eq!(may_run_on(), before);
    }
}
