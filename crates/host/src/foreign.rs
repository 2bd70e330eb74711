//! Finds pages of other processes in a swap area that pagetide switched on.
//!
//! A swap area is open to every process of the machine. When it is switched off, the pages in it are read back into the
//! cgroups of their owners. If such a cgroup is at its limit, the kernel kills a process in it. So an area is switched
//! off only when no other process has pages in it.

use std::fs;
use std::path::Path;

use pagetide_quantity::Bytes;
use pagetide_system::swaps;

use crate::group_files::{self, number, number_of, swap_of_version_1};
use crate::hierarchy::Hierarchy;

/// Maximum swap space that may belong to no process: per-CPU caches of swap slots (before kernel 6.15), and slots of
/// pages in the swap cache whose process has exited. On 6.12 with one CPU, 1.2 MiB were seen.
const NOBODYS: Bytes = Bytes(4 << 20);

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

    /// Returns true if the area can be switched off without reading back pages of other processes. Pages that are left
    /// in the area then belong to no process, or are shared memory of no cgroup, so reading them back brings no cgroup
    /// to its limit.
    pub fn allows_switching_off(&self) -> bool {
        self.used.0 == 0 || (self.others.0 == 0 && of_processes(&all_processes()) == 0)
    }
}

/// Returns the swap space in bytes that a cgroup (version 1 or 2) and all cgroups in it use, including pages in the
/// swap cache; `None` if the cgroup has no memory controller.
fn swap_of(group: &Path) -> Option<u64> {
    number(group, "memory.swap.current").or_else(|| swap_of_version_1(group))
}

/// Like [`swap_of`], without pages in the swap cache. They may belong to a process that has exited, and they stay until
/// the kernel needs memory (at least up to kernel 6.18).
fn only_in_swap(group: &Path) -> Option<u64> {
    let count = |name| number_of(group, "memory.stat", name);
    match number(group, "memory.swap.current") {
        Some(swap) => Some(swap.saturating_sub(count("swapcached").unwrap_or(0))),
        None => count("total_swap"),
    }
}

/// Returns the swap space in bytes of all cgroups but `group`, and of processes in the root cgroup (see
/// [`ForeignUse`]).
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
        assert!(!area(1, 0, 1).allows_switching_off());
        assert_eq!(area(55, 8, 43).certain(), Bytes::from_mib(43));
        assert_eq!(area(8, 8, 0).certain(), Bytes(0));
        // Slots that belong to no process are no reason to end a trial.
        assert_eq!(area(40, 8, 0).certain(), Bytes(0));
        assert_eq!(area(10, 8, 100).certain(), Bytes(0));
    }
}
