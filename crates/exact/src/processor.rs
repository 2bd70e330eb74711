//! Processors for emulators: each stays on one of its own.
//!
//! An emulator has two threads that take turns: the one that runs the guest, and the one that does its input and output.
//! Woken on another processor, each finds what the other just wrote in the wrong cache, and the sleeping processor has to be
//! woken first. On one processor, two trials side by side take a seventh less time. What a guest does is the same anywhere.
//!
//! Which processors are taken is known on the whole machine, whoever takes them: the kernel's own file of a processor is
//! locked. Where all are taken, or the files cannot be locked, an emulator runs where the scheduler likes.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A processor that is ours until dropped; the kernel frees it however its holder ends.
#[derive(Debug)]
#[must_use]
pub struct Processor {
    number: usize,
    _lock: File,
}

impl Processor {
    /// One that this process may run on and nobody has, the fastest first; of the threads of one core, one before all others.
    pub fn take() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let mut all: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&number| allowed.is_set(number))
            .collect();
        all.sort_by_cached_key(|&number| rank(number));
        all.into_iter().find_map(Self::lock)
    }

    /// This one, if nobody has it.
    fn lock(number: usize) -> Option<Self> {
        let lock = File::open(folder(number).join("uevent")).ok()?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self {
            number,
            _lock: lock,
        })
    }

    /// Does `what` on this processor alone: children started there inherit it.
    pub fn on<T>(&self, what: impl FnOnce() -> T) -> T {
        let before = sched_getaffinity(None);
        let mut only = CpuSet::new();
        only.set(self.number);
        // Where it is refused, the scheduler chooses.
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

/// Sorts first what is to be taken first. What the kernel does not say counts as equal.
fn rank(number: usize) -> (bool, Reverse<u64>) {
    let read = |name: &str| fs::read_to_string(folder(number).join(name)).ok();
    // "0,4" or "0-1".
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
        // Trials of other processes may have some just now.
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
        // Not locked: what is seen is what `on` does.
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
