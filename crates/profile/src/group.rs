//! Groups of functions, such as page faults, that a kernel developer recognises by name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Serialize;

use crate::profile::{Function, USER};

/// The list of groups. A line without a space at its start names a group. The lines below it contain patterns: names of
/// functions, or beginnings of names, which end with `*`. `[NAME]` matches the functions of module NAME that no other
/// pattern matches.
const LIST: &str = include_str!("groups.txt");

/// Name of the group of all functions that no pattern matches.
pub const NOT_GROUPED: &str = "not grouped";

/// Groups of the functions of memory management.
const MEMORY: [&str; 8] = [
    "page faults",
    "reclaim: scanning lists",
    "rmap walks",
    "swap and block I/O",
    "compaction",
    "page allocation",
    "workingset and refaults",
    "memcg and statistics",
];
/// The group of file systems. It includes the page cache, which is a part of memory management too.
const FILES: &str = "file system";
/// Beginnings of names by which functions of memory management are known that are in the group of file systems or in
/// none: functions of folios, the page cache, shared memory and writeback.
const PAGES: [&str; 18] = [
    "filemap_",
    "__filemap_",
    "shmem_",
    "mark_",
    "page_cache_",
    "__page_cache_",
    "readahead_",
    "ondemand_readahead",
    "force_page_cache_",
    "truncate_",
    "invalidate_",
    "balance_dirty_",
    "domain_dirty_",
    "write_cache_pages",
    "writeback_",
    "wb_",
    "folio_",
    "__folio_",
];

/// Name of a group of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Group(pub &'static str);

/// Groups and their patterns by the first byte of the pattern, each in the order of the list. Patterns of modules are at
/// [`MODULES`].
static PATTERNS: LazyLock<BTreeMap<u8, Vec<(Group, &'static str)>>> = LazyLock::new(|| {
    let mut group = Group(NOT_GROUPED);
    let mut all: BTreeMap<u8, Vec<_>> = BTreeMap::new();
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with(' ') {
            for pattern in line.split_whitespace() {
                let first = pattern.as_bytes().first().copied();
                all.entry(first.unwrap_or_default())
                    .or_default()
                    .push((group, pattern));
            }
        } else if !line.is_empty() {
            group = Group(line);
        }
    }
    all
});

/// First byte of the patterns of modules.
const MODULES: u8 = b'[';

/// Returns the group of a function; for a function of a program, "user code". If several patterns match, a complete
/// name takes precedence over the beginning of a name, a longer beginning over a shorter one, and a name over a module.
pub fn group_of(function: &Function) -> Group {
    if function.is_program || function.name == USER {
        return Group("user code");
    }
    let mut best = (0, Group(NOT_GROUPED));
    let first = function.name.as_bytes().first().copied();
    let lists = first.into_iter().chain([MODULES]);
    let patterns = lists.filter_map(|first| PATTERNS.get(&first)).flatten();
    for &(group, pattern) in patterns {
        let weight = match (pattern.strip_suffix('*'), &function.module) {
            (Some(start), _) if function.name.starts_with(start) => 1 + start.len(),
            (None, _) if function.name == pattern => usize::MAX,
            (None, Some(module)) if pattern.trim_matches(['[', ']']) == module => 1,
            _ => 0,
        };
        if weight > best.0 {
            best = (weight, group);
        }
    }
    best.1
}

/// True for a function of memory management: reclaim, faults, allocation, swap with its devices, compaction, accounting,
/// or the page cache. Names decide, and not the folder of the source, which a kernel's list of functions does not have.
pub fn is_memory_management(function: &Function) -> bool {
    let Group(group) = group_of(function);
    let begins = |start: &&str| function.name.starts_with(*start);
    let is_other = || [FILES, NOT_GROUPED].contains(&group);
    MEMORY.contains(&group) || (is_other() && PAGES.iter().any(begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, module: Option<&str>) -> &'static str {
        let function = Function {
            name: name.to_owned(),
            module: module.map(str::to_owned),
            ..Function::default()
        };
        group_of(&function).0
    }

    #[test]
    fn functions_are_in_the_groups_that_a_kernel_developer_expects() {
        for (name, expected) in [
            ("shrink_folio_list", "reclaim: scanning lists"),
            ("lru_gen_look_around", "reclaim: scanning lists"),
            ("try_to_unmap_one", "rmap walks"),
            ("folio_referenced_one", "rmap walks"),
            ("handle_mm_fault", "page faults"),
            ("asm_exc_page_fault", "page faults"),
            ("swap_writepage", "swap and block I/O"),
            ("blk_mq_submit_bio", "swap and block I/O"),
            ("LZ4_compress_fast", "compression"),
            ("get_page_from_freelist", "page allocation"),
            ("workingset_refault", "workingset and refaults"),
            ("__mod_memcg_lruvec_state", "memcg and statistics"),
            ("_raw_spin_lock", "locks and RCU"),
            ("__schedule", "scheduler and switches"),
            ("compact_zone", "compaction"),
            ("no_such_function", NOT_GROUPED),
        ] {
            assert_eq!(group(name, None), expected, "{name}");
        }
        assert_eq!(group(USER, None), "user code");
        assert_eq!(group("anything", Some("zram")), "swap and block I/O");
    }

    #[test]
    fn memory_management_is_what_reclaims_and_caches_and_neither_a_program_nor_a_file_system() {
        let function = |name: &str, is_program| Function {
            name: name.to_owned(),
            is_program,
            ..Function::default()
        };
        for (name, expected) in [
            ("shrink_folio_list", true),
            ("compact_zone", true),
            ("filemap_get_pages", true),
            ("shmem_swapin_folio", true),
            ("folio_mark_lazyfree", true),
            ("ext4_writepages", false),
            ("vfs_read", false),
            ("__schedule", false),
            ("LZ4_compress_fast", false),
            ("no_such_function", false),
        ] {
            let is = is_memory_management(&function(name, false));
            assert_eq!(is, expected, "{name}");
        }
        assert!(!is_memory_management(&function("shrink_folio_list", true)));
        let groups: Vec<&str> = PATTERNS
            .values()
            .flatten()
            .map(|(group, _)| group.0)
            .collect();
        let known = MEMORY.iter().chain([&FILES]);
        known.for_each(|name| assert!(groups.contains(name), "{name}"));
    }

    #[test]
    fn no_pattern_stands_in_two_groups() {
        let mut seen = BTreeMap::new();
        for &(group, pattern) in PATTERNS.values().flatten() {
            assert_eq!(seen.insert(pattern, group), None, "{pattern}");
        }
        assert!(seen.len() > 100);
    }
}
