//! Memory nodes: sets the free memory of each node, and checks that a slow node is in a tier of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use pagetide_quantity::Bytes;
use pagetide_record::NodesSpec;
use pagetide_record::nodes::{MemoryPolicy, POLICY};
use pagetide_record::outcome::Invalid;

use crate::ballast::{self, MemoryArea};
use crate::error::GuestError;

/// Folder in sysfs with a folder for each memory node.
const NODES: &str = "/sys/devices/system/node";
/// Folder in sysfs with a folder for each memory tier. Source: kernel `mm/memory-tiers.c`.
const TIERS: &str = "/sys/devices/virtual/memory_tiering";

/// Returns the paths of the nodes' folders in sysfs; empty if the machine has one node.
pub fn folders(nodes: &NodesSpec) -> Vec<PathBuf> {
    (0..nodes.all().len())
        .map(|node| PathBuf::from(format!("{NODES}/node{node}")))
        .collect()
}

/// Returns the free memory of each node, including pages on per-CPU lists.
pub fn free(nodes: &NodesSpec) -> Result<Vec<Bytes>, GuestError> {
    (0..nodes.all().len())
        .map(|node| ballast::free_on(node as u64))
        .collect()
}

/// Locks memory on each node until only `wanted` is free there. The first node comes last, because page tables of the
/// ballast of all nodes are on it.
pub fn leave(wanted: &[Bytes]) -> Result<(), GuestError> {
    for (node, wanted) in wanted.iter().enumerate().rev() {
        ballast::leave_on(MemoryArea::Node(node as u64), *wanted)?;
    }
    Ok(())
}

/// Sets the memory policy of this process, which its child processes inherit. Fails if set_mempolicy(2) fails.
pub fn obey(policy: MemoryPolicy) -> io::Result<()> {
    // Source: kernel `include/uapi/linux/mempolicy.h`.
    let mode: libc::c_int = match policy {
        MemoryPolicy::Default => 0,
        MemoryPolicy::Prefer(_) => 1,
        MemoryPolicy::Bind(_) => 2,
        MemoryPolicy::Interleave(_) => 3,
    };
    let nodes: libc::c_ulong = policy.nodes();
    // The kernel subtracts one from the number of bits. It refuses a mask for the default policy.
    let (mask, bits): (*const libc::c_ulong, libc::c_ulong) = match policy {
        MemoryPolicy::Default => (std::ptr::null(), 0),
        _ => (&raw const nodes, 65),
    };
    // SAFETY: the mask of 64 bits lives through the call, or there is none.
    let status = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the memory policy of the workload; `None` if the settings do not state a policy. The text was checked before
/// the trial, so an invalid text is treated as the default policy.
pub fn policy(settings: &BTreeMap<String, String>) -> Option<MemoryPolicy> {
    settings
        .get(POLICY)
        .map(|text| text.parse().unwrap_or_default())
}

/// Tries a memory policy in this process, and sets the default policy again. Fails if the kernel refuses the policy.
pub fn tried(policy: MemoryPolicy) -> Result<(), Invalid> {
    obey(policy)
        .and_then(|()| obey(MemoryPolicy::Default))
        .map_err(|why| Invalid::SettingRefused {
            name: POLICY.to_owned(),
            why: why.to_string(),
        })
}

/// Returns the names of the memory tiers, each with its list of nodes, such as `0-1,3`; empty if there are no tiers.
fn tiers() -> BTreeMap<String, String> {
    let entries = fs::read_dir(TIERS).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let list = fs::read_to_string(entry.path().join("nodelist")).ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Some((name, list.trim().to_owned()))
    };
    entries.filter_map(read).collect()
}

/// Returns the memory tiers as text for the record: name and nodes of each, highest tier first.
///
/// Fails if a slow node is in no tier or in the tier of the first node: nothing would ever be demoted to it.
pub fn proven_tiers(nodes: &NodesSpec) -> Result<String, GuestError> {
    let tiers = tiers();
    let tier_of = |node: usize| tiers.iter().find(|(_, list)| has(list, node));
    for (node, spec) in nodes.all().iter().enumerate() {
        let (own, first) = (tier_of(node), tier_of(0));
        if spec.slow.is_some() && (own.is_none() || own == first) {
            return Err(GuestError::NoTier { node });
        }
    }
    let mut all: Vec<(usize, String)> = tiers
        .iter()
        .map(|(name, list)| {
            let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            (number.parse().unwrap_or(0), format!("{name}: {list}"))
        })
        .collect();
    all.sort();
    let all: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
    Ok(all.join("; "))
}

/// Returns true if a list of numbers and ranges, such as `0-1,3`, contains this number.
fn has(list: &str, number: usize) -> bool {
    list.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&number),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_accepted_and_the_default_comes_back() {
        // Every machine has node 0. A kernel without NUMA has no such call.
        match obey(MemoryPolicy::Prefer(0)) {
            Err(why) if why.raw_os_error() == Some(libc::ENOSYS) => return,
            result => result.unwrap(),
        }
        obey(MemoryPolicy::Default).unwrap();
        for policy in [MemoryPolicy::Bind(1), MemoryPolicy::Interleave(1)] {
            tried(policy).unwrap();
        }
        assert!(tried(MemoryPolicy::Bind(1 << 63)).is_err());
    }

    #[test]
    fn a_list_of_nodes_has_numbers_and_ranges() {
        for (list, number, is_in) in [
            ("0", 0, true),
            ("0", 1, false),
            ("0-2", 1, true),
            ("0,2-3", 3, true),
            ("0,2-3", 1, false),
            ("", 0, false),
        ] {
            assert_eq!(has(list, number), is_in, "{list} {number}");
        }
    }

    #[test]
    fn each_node_has_a_folder_and_one_node_none() {
        assert_eq!(folders(&"8M,8M".parse().unwrap()).len(), 2);
        assert!(folders(&NodesSpec::default()).is_empty());
    }
}
