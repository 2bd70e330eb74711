//! The machine around the arenas: what it is, and how much of it a guest may use.

use std::fs;

use pagetide_quantity::Bytes;
use pagetide_record::Machine;

/// Memory that guests never touch.
pub const KEPT: Bytes = Bytes(4 << 30);

/// Memory available without swapping, by the kernel's own estimate.
pub fn available() -> Bytes {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kib(&text, "MemAvailable:")
}

fn kib(text: &str, name: &str) -> Bytes {
    text.lines()
        .find_map(|line| {
            line.strip_prefix(name)?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse()
                .ok()
        })
        .map_or(Bytes(0), Bytes::from_kib)
}

/// What this machine is, for the record.
pub fn machine() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let field = |text: &str, name: &str, by: char| {
        text.lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(by))
            .map(|(_, value)| value.trim().trim_matches('"').to_owned())
            .unwrap_or_default()
    };
    Machine {
        cpu: field(&cpuinfo, "model name", ':'),
        cpus: u32::try_from(cpus()).unwrap_or(1),
        memory: kib(&read("/proc/meminfo"), "MemTotal:"),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        system: field(&read("/etc/os-release"), "PRETTY_NAME=", '='),
    }
}

/// Processors this process may use.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
