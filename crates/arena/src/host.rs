//! The host machine: its description, and how much of it guests may use.

use std::fs;

use pagetide_quantity::Bytes;
use pagetide_record::Machine;
use pagetide_system::{cpuinfo, meminfo};

/// Amount of the host's memory that guests must leave free.
pub const RESERVED_MEMORY: Bytes = Bytes(4 << 30);

/// Returns the host's memory that is available without swapping: `MemAvailable` of `/proc/meminfo`; 0 if not readable.
pub fn available() -> Bytes {
    meminfo::amount("MemAvailable").unwrap_or_default()
}

/// Returns CPU model, number of CPUs, memory, kernel release and distribution of this machine, for records.
pub fn machine() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let release = read("/etc/os-release");
    let system = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .unwrap_or_default();
    Machine {
        cpu: cpuinfo::model(),
        cpus: u32::try_from(cpus()).unwrap_or(1),
        memory: meminfo::amount("MemTotal").unwrap_or_default(),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        system: system.trim().trim_matches('"').to_owned(),
    }
}

/// Returns the number of CPUs that this process may use; 1 if it is not known.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
