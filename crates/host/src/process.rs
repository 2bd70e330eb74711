//! Identification of a process by its PID and its start time, because PIDs are reused.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process that is recognised even if its PID is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// PID of the process.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start: u64,
}

impl Process {
    /// Returns the process with this PID; `None` if there is none, or only a zombie.
    pub fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program may contain blanks and brackets, so the words are counted after its last bracket.
        let (_, rest) = text.rsplit_once(')')?;
        let mut words = rest.split_whitespace();
        let state = words.next()?;
        let start = words.nth(18)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(Self { pid, start })
    }

    /// Returns this process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self::of(pid).unwrap_or(Self { pid, start: 0 })
    }

    /// Returns true if the process is still running.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// Returns the boot ID of the running system; empty if the kernel does not provide it.
pub fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns a text that identifies the PID namespace of this process; empty if it cannot be read.
pub fn namespace() -> String {
    fs::read_link("/proc/self/ns/pid")
        .map(|link| link.display().to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends_and_its_number_alone_is_not_enough() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let process = Process::of(child.id()).unwrap();
        assert!(process.is_alive());
        let other = Process {
            start: process.start + 1,
            ..process
        };
        assert!(!other.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_alive());
        assert!(Process::current().is_alive());
    }
}
