//! Describes the CPUs of this machine and their topology, for the record.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Folder of the CPUs in sysfs.
const CPUS: &str = "/sys/devices/system/cpu";

/// Returns facts about the CPUs: which are online, the number of cores and packages, and the size of the last-level
/// cache.
pub(crate) fn facts() -> BTreeMap<String, String> {
    let read = |path: &str| {
        let text = fs::read_to_string(format!("{CPUS}/{path}")).ok()?;
        Some(text.trim().to_owned())
    };
    let online = read("online").unwrap_or_default();
    let (mut cores, mut packages) = (BTreeSet::new(), BTreeSet::new());
    let cpus = numbers(&online);
    for cpu in &cpus {
        let of = |file: &str| read(&format!("cpu{cpu}/topology/{file}"));
        if let (Some(package), Some(core)) = (of("physical_package_id"), of("core_id")) {
            packages.insert(package.clone());
            cores.insert((package, core));
        }
    }
    let mut facts = BTreeMap::from([
        ("cpus".to_owned(), cpus.len().to_string()),
        ("cpus-online".to_owned(), online),
    ]);
    if !cores.is_empty() {
        let text = format!("{} cores in {} packages", cores.len(), packages.len());
        facts.insert("topology".to_owned(), text);
    }
    let caches = (0..4).rev().filter_map(|index| {
        let level = read(&format!("cpu0/cache/index{index}/level"))?;
        let size = read(&format!("cpu0/cache/index{index}/size"))?;
        Some(format!("L{level} {size}"))
    });
    if let Some(last) = caches.into_iter().next() {
        facts.insert("last-cache".to_owned(), last);
    }
    facts
}

/// Returns the numbers in a list of ranges such as `0-1,4` (kernel `Documentation/admin-guide/cputopology.rst`).
fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_processors_is_read_and_this_machine_has_some() {
        assert_eq!(numbers("0-1,4"), [0, 1, 4]);
        assert_eq!(numbers(""), [0; 0]);
        let found = facts();
        assert_ne!(found["cpus"], "0");
    }
}
