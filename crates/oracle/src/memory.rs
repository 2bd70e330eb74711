//! Amount of memory that this process can still allocate.

use std::fs;
use std::path::Path;

use pagetide_system::meminfo;

/// Mount points of the cgroup hierarchies of versions 2 and 1, each with the name of the file that contains a cgroup's
/// memory limit.
const GROUPS: [(&str, &str); 3] = [
    ("/sys/fs/cgroup", "memory.max"),
    ("/sys/fs/cgroup/unified", "memory.max"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
];

/// Returns the number of bytes that this process can use: available memory, at most what the limits of its address
/// space and its memory cgroups allow.
pub fn memory_at_hand() -> u64 {
    let available = meminfo::amount("MemAvailable").map_or(u64::MAX, |bytes| bytes.0);
    available.min(address_space()).min(groups())
}

/// Returns the number of bytes left below the limit on the address space (`ulimit -v`); `u64::MAX` without a limit.
fn address_space() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text
        .split_whitespace()
        .next()
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    limit.map_or(u64::MAX, |limit| {
        limit.saturating_sub(pages * rustix::param::page_size() as u64)
    })
}

/// Returns the smallest memory limit of this process's cgroups and their ancestors, in bytes; `u64::MAX` if there is no
/// limit.
fn groups() -> u64 {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths
        .flat_map(|path| GROUPS.map(|(root, file)| smallest(Path::new(root), path, file)))
        .min()
        .unwrap_or(u64::MAX)
}

fn smallest(root: &Path, path: &str, file: &str) -> u64 {
    let group = root.join(path.trim_start_matches('/'));
    let limit = |folder: &Path| {
        fs::read_to_string(folder.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    group
        .ancestors()
        .take_while(|folder| folder.starts_with(root))
        .filter_map(limit)
        .min()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_of_a_group_and_those_above_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(smallest(root.path(), "/a/b", "memory.max"), u64::MAX);
        fs::write(root.path().join("a/memory.max"), "104857600\n").unwrap();
        assert_eq!(smallest(root.path(), "/a/b", "memory.max"), 104_857_600);
        assert!(memory_at_hand() > 1 << 20);
    }
}
