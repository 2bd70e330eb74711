//! `/proc/timer_list`: how often each CPU went idle (kernel/time/timer_list.c).
//!
//! A guest that is to be exact must never halt; its idle counters have to stand still, and this is where they are read.

use serde::{Deserialize, Serialize};

use super::file::Parse;
use super::scan;

/// One CPU's idle counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleCpu {
    /// The CPU.
    pub cpu: u32,
    /// How often the idle loop was entered with the tick code (`.idle_calls`).
    pub calls: u64,
    /// How often the tick was stopped for it (`.idle_sleeps`).
    pub sleeps: u64,
}

/// The idle counters of all CPUs. Empty on kernels without a tickless idle loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerList {
    cpus: Vec<IdleCpu>,
}

impl TimerList {
    /// Every CPU.
    pub fn cpus(&self) -> &[IdleCpu] {
        &self.cpus
    }

    /// Idle calls of all CPUs; `None` where the kernel does not print them, which proves nothing.
    pub fn idle_calls(&self) -> Option<u64> {
        self.cpus
            .iter()
            .map(|cpu| cpu.calls)
            .reduce(u64::saturating_add)
    }
}

impl Parse for TimerList {
    fn parse(&mut self, text: &[u8]) {
        self.cpus.clear();
        let mut current = None;
        for line in scan::lines(text) {
            let line = scan::trim(line);
            if let Some(number) = line.strip_prefix(b"cpu: ") {
                current = scan::number(number).and_then(|cpu| u32::try_from(cpu).ok());
                continue;
            }
            let Some((key, value)) = scan::split_once(line, b':') else {
                continue;
            };
            let key = scan::trim(key);
            if key != b".idle_calls" && key != b".idle_sleeps" {
                continue;
            }
            let (Some(cpu), Some(value)) = (current, scan::number(scan::trim(value))) else {
                continue;
            };
            if self.cpus.last().is_none_or(|last| last.cpu != cpu) {
                self.cpus.push(IdleCpu {
                    cpu,
                    ..IdleCpu::default()
                });
            }
            if let Some(last) = self.cpus.last_mut() {
                match key {
                    b".idle_calls" => last.calls = value,
                    _ => last.sleeps = value,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_calls_are_read_for_every_cpu() {
        let mut list = TimerList::default();
        list.parse(b"Timer List Version: v0.10\ncpu: 0\n clock 0:\n  .idle_calls     : 53832\n  .idle_sleeps    : 33426\njiffies: 4\ncpu: 1\n  .idle_calls     : 8\n  .idle_sleeps    : 1\n\nTick Device: mode:     1\n");
        assert_eq!(list.idle_calls(), Some(53_840));
        assert_eq!(list.cpus()[1].sleeps, 1);
    }

    #[test]
    fn a_kernel_that_prints_no_idle_calls_proves_nothing() {
        let mut list = TimerList::default();
        list.parse(b"Timer List Version: v0.10\ncpu: 0\n  .hres_active    : 1\n");
        assert_eq!(list.idle_calls(), None);
    }

    #[test]
    fn this_kernel_has_gone_idle() {
        let Ok(text) = std::fs::read("/proc/timer_list") else {
            println!("skipped: /proc/timer_list cannot be read without root");
            return;
        };
        let mut list = TimerList::default();
        list.parse(&text);
        assert!(list.idle_calls().unwrap() > 0);
    }
}
