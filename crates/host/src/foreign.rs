//! Finds pages of other processes in a swap area that pagetide switched on.
//!
//! A swap area is open to every process of the machine. When it is switched off, the pages in it are read back into the
//! cgroups of their owners. If such a cgroup is at its limit, the kernel kills a process in it. So an area is switched
//! off only when no other process has pages in it, or when the owners' cgroups and the machine have room for all of
//! them.

use std::fs;
use std::path::Path;

use pagetide_quantity::Bytes;
use pagetide_system::{meminfo, swaps};

use crate::group_files::{self, number, number_of, swap_of_version_1, tree};
use crate::hierarchy::Hierarchy;

/// Maximum swap space that may belong to no process: per-CPU caches of swap slots (before kernel 6.15), and slots of
/// pages in the swap cache whose process has exited. On 6.12 with one CPU, 1.2 MiB were seen.
const NOBODYS: Bytes = Bytes(4 << 20);

/// Memory that must stay free in a cgroup, and available in the machine, after pages were read back, because the owners
/// may allocate while they are read.
const RESERVE: Bytes = Bytes(64 << 20);

/// Used space of a swap area, and the swap space that the workload's cgroup and all others use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignUse {
    /// Used space of the area.
    pub used: Bytes,
    /// Swap space that the workload's cgroup uses in all swap areas.
    pub ours: Bytes,
    /// Swap space that all other cgroups, and processes in the root cgroup, use in all swap areas. Pages of cgroups
    /// that are also in the swap cache are not counted: reading them back needs no memory.
    pub others: Bytes,
}

impl ForeignUse {
    /// Measures the use of the area on `device`. `group` is the folder of the workload's memory cgroup.
    pub fn of(device: &str, group: Option<&Path>) -> Self {
        let used = swaps::table()
            .iter()
            .filter(|area| area.path == device)
            .map(|area| area.used.0)
            .sum();
        let ours = group.map_or(0, |group| swap_of(group).unwrap_or(0));
        Self {
            used: Bytes(used),
            ours: Bytes(ours),
            others: Bytes(others(group)),
        }
    }

    /// Returns the number of bytes in the area that belong to processes outside of the workload's cgroup. This is a
    /// lower bound: a few MiB may be missing.
    pub fn certain(&self) -> Bytes {
        let rest = self.used.0.saturating_sub(self.ours.0 + NOBODYS.0);
        Bytes(rest.min(self.others.0))
    }

    /// Returns true if the area can be switched off without bringing a cgroup of other processes to its limit. Then it
    /// has no pages of other processes, or there is room for them: in each cgroup that has pages in swap, and in the
    /// machine. Pages of no process and of no cgroup, such as those of a tmpfs, count for the machine only.
    pub fn allows_switching_off(&self) -> bool {
        let is_theirs = || self.others.0 > 0 || of_processes(&all_processes()) > 0;
        self.used.0 == 0 || !is_theirs() || there_is_room(self.used)
    }
}

/// Returns true if the machine has memory for `used` bytes that are read back from swap, and each cgroup for the pages
/// that it has in swap. The swap of a process may be in other areas too, so all of it is counted.
fn there_is_room(used: Bytes) -> bool {
    let available = meminfo::amount("MemAvailable").unwrap_or_default();
    if available.0 < used.0.saturating_add(RESERVE.0) {
        return false;
    }
    let Ok(hierarchy) = Hierarchy::find() else {
        return false;
    };
    // The counters of a cgroup contain those of the cgroups in it, so each limit is compared with all that it limits.
    tree(hierarchy.root()).iter().all(|group| {
        let swap = only_in_swap(group).unwrap_or(0);
        swap == 0 || room(group).is_none_or(|room| room >= swap.saturating_add(RESERVE.0))
    })
}

/// Returns how many bytes a cgroup (version 1 or 2) can still take without reclaiming anything but its least used page
/// cache; `None` if it has no limit.
fn room(group: &Path) -> Option<u64> {
    let limit = number(group, "memory.max").or_else(|| number(group, "memory.limit_in_bytes"))?;
    let usage = number(group, "memory.current").or_else(|| number(group, "memory.usage_in_bytes"));
    let cache = number_of(group, "memory.stat", "total_inactive_file")
        .or_else(|| number_of(group, "memory.stat", "inactive_file"));
    // A cgroup whose usage is unknown counts as full.
    let usage = usage.unwrap_or(limit).saturating_sub(cache.unwrap_or(0));
    Some(limit.saturating_sub(usage))
}

/// Returns the swap space in bytes that a cgroup (version 1 or 2) and all cgroups in it use, including pages in the
/// swap cache; `None` if the cgroup does not count swap.
fn swap_of(group: &Path) -> Option<u64> {
    number(group, "memory.swap.current").or_else(|| swap_of_version_1(group))
}

/// Returns the same as [`swap_of`], without pages in the swap cache, or `None` in the same case. Pages in the swap
/// cache may belong to a process that has exited, and stay until the kernel needs memory (at least up to kernel 6.18).
fn only_in_swap(group: &Path) -> Option<u64> {
    let count = |name| number_of(group, "memory.stat", name);
    match number(group, "memory.swap.current") {
        Some(swap) => Some(swap.saturating_sub(count("swapcached").unwrap_or(0))),
        None => count("total_swap"),
    }
}

/// Returns the swap space in bytes of all cgroups but `group`, and of processes in the root cgroup (see
/// [`ForeignUse`]). If the tool has only a delegated cgroup or none, returns that of all processes.
fn others(group: Option<&Path>) -> u64 {
    let hierarchy = Hierarchy::find();
    let root = match &hierarchy {
        Ok(Hierarchy::Root { root }) => root,
        Ok(Hierarchy::Version1 { memory, .. }) => memory,
        // Only root switches swap on.
        _ => return of_processes(&all_processes()),
    };
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let groups = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| Some(path.as_path()) != group)
        .filter_map(|path| only_in_swap(&path));
    groups.sum::<u64>() + of_processes(&group_files::members(root))
}

/// Returns the PIDs of all processes of the machine.
fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns the swap space in bytes of these processes, without shared memory.
fn of_processes(pids: &[u32]) -> u64 {
    let swap = |pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmSwap:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    pids.iter().filter_map(swap).sum::<u64>() << 10
}

/// Returns name, PID and swap space of the processes outside of the cgroup `group` that have pages in swap, the largest
/// first, at most `most` of them.
pub fn owners(group: Option<&Path>, most: usize) -> Vec<(String, Bytes)> {
    let mut found: Vec<(String, Bytes)> = Vec::new();
    let ours = group.map(group_files::all_members).unwrap_or_default();
    for pid in all_processes() {
        let swap = of_processes(&[pid]);
        if swap == 0 || ours.contains(&pid) {
            continue;
        }
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
        found.push((format!("{name} ({pid})"), Bytes(swap)));
    }
    found.sort_by_key(|(_, swap)| std::cmp::Reverse(swap.0));
    found.truncate(most);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_switched_off_only_without_pages_of_others() {
        let area = |used: u64, ours: u64, others: u64| ForeignUse {
            used: Bytes::from_mib(used),
            ours: Bytes::from_mib(ours),
            others: Bytes::from_mib(others),
        };
        assert!(area(0, 0, 40).allows_switching_off());
        // More than any machine has room for.
        assert!(!area(1 << 30, 0, 1).allows_switching_off());
        assert_eq!(area(55, 8, 43).certain(), Bytes::from_mib(43));
        assert_eq!(area(8, 8, 0).certain(), Bytes(0));
        // Slots that belong to no process are no reason to end a trial.
        assert_eq!(area(40, 8, 0).certain(), Bytes(0));
        assert_eq!(area(10, 8, 100).certain(), Bytes(0));
    }

    #[test]
    fn the_room_of_a_group_is_up_to_its_limit_and_counts_unused_page_cache() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path();
        let write = |file: &str, text: &str| fs::write(group.join(file), text).unwrap();
        // Version 2.
        write("memory.max", "max\n");
        write("memory.current", "900\n");
        assert_eq!(room(group), None);
        write("memory.max", "1000\n");
        assert_eq!(room(group), Some(100));
        write("memory.stat", "anon 1\ninactive_file 300\n");
        assert_eq!(room(group), Some(400));
        write("memory.current", "2000\n");
        assert_eq!(room(group), Some(0));
        fs::remove_file(group.join("memory.current")).unwrap();
        fs::remove_file(group.join("memory.stat")).unwrap();
        assert_eq!(room(group), Some(0));
        // Version 1.
        fs::remove_file(group.join("memory.max")).unwrap();
        write("memory.limit_in_bytes", "1000\n");
        write("memory.usage_in_bytes", "900\n");
        write("memory.stat", "inactive_file 1\ntotal_inactive_file 30\n");
        assert_eq!(room(group), Some(130));
    }
}
