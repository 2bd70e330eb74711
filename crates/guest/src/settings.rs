//! Settings by name: where they lie, how they are applied, and whether they stuck.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;
use pagetide_record::outcome::Invalid;

/// Short names of folders of settings.
const FOLDERS: [(&str, &str); 6] = [
    ("lru_gen/", "/sys/kernel/mm/lru_gen/"),
    ("thp/", "/sys/kernel/mm/transparent_hugepage/"),
    ("ksm/", "/sys/kernel/mm/ksm/"),
    ("swap/", "/sys/kernel/mm/swap/"),
    ("zswap/", "/sys/module/zswap/parameters/"),
    ("hugepages/", "/sys/kernel/mm/hugepages/"),
];

/// First parts of dotted sysctl names that make sense in a trial.
const SYSCTLS: [&str; 3] = ["vm", "kernel", "fs"];

/// Settings people name most, for suggestions and lists.
pub const KNOWN: [&str; 27] = [
    "vm.swappiness",
    "vm.page-cluster",
    "vm.watermark_scale_factor",
    "vm.watermark_boost_factor",
    "vm.min_free_kbytes",
    "vm.vfs_cache_pressure",
    "vm.dirty_ratio",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.compaction_proactiveness",
    "vm.compact_unevictable_allowed",
    "vm.extfrag_threshold",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.percpu_pagelist_high_fraction",
    "vm.zone_reclaim_mode",
    "vm.lowmem_reserve_ratio",
    "vm.workingset_protection",
    "lru_gen/enabled",
    "lru_gen/min_ttl_ms",
    "swap/vma_ra_enabled",
    "thp/enabled",
    "thp/defrag",
    "thp/shmem_enabled",
    "thp/khugepaged/defrag",
    "zswap/enabled",
    "zswap/max_pool_percent",
];

/// Where a setting of this name lies; `None` for a name of no known form.
pub fn path(name: &str) -> Option<PathBuf> {
    if name.split('/').any(|part| part == "..") {
        return None;
    }
    if name.starts_with("/sys/") || name.starts_with("/proc/sys/") {
        return Some(PathBuf::from(name));
    }
    for (short, folder) in FOLDERS {
        if let Some(rest) = name.strip_prefix(short) {
            return (!rest.is_empty()).then(|| Path::new(folder).join(rest));
        }
    }
    let (first, rest) = name.split_once('.')?;
    if !SYSCTLS.contains(&first) || rest.is_empty() || rest.contains('/') {
        return None;
    }
    Some(
        Path::new("/proc/sys")
            .join(first)
            .join(rest.replace('.', "/")),
    )
}

/// What a word of a setting means as a number: booleans have many spellings, masks are hexadecimal, sizes have units
/// (kernel `lib/kstrtox.c`, `kstrtobool`, and `lib/cmdline.c`, `memparse`).
fn number(word: &str) -> Option<u64> {
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" | "on" | "enabled" => return Some(1),
        "n" | "no" | "false" | "off" | "disabled" => return Some(0),
        _ => {}
    }
    if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    let digits = word
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(word.len());
    let (digits, unit) = word.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Whether two words mean the same.
fn same(wanted: &str, found: &str) -> bool {
    wanted == found || number(wanted).is_some_and(|wanted| number(found) == Some(wanted))
}

/// Whether what was read back means what was written: files show choices in brackets, masks in hexadecimal, booleans as
/// letters or words, sizes without their units.
pub fn stuck(wanted: &str, found: &str) -> bool {
    let (wanted, found) = (wanted.trim(), found.trim());
    if wanted == found {
        return true;
    }
    if let Some(chosen) = found
        .split_whitespace()
        .find_map(|w| w.strip_prefix('[')?.strip_suffix(']'))
    {
        return same(wanted, chosen);
    }
    // `y` to a mask of features switches all of them on (kernel `Documentation/admin-guide/mm/multigen_lru.rst`).
    if wanted.eq_ignore_ascii_case("y") && found.starts_with("0x") {
        return number(found).is_some_and(|mask| mask != 0);
    }
    let (mut of_wanted, mut of_found) = (wanted.split_whitespace(), found.split_whitespace());
    loop {
        match (of_wanted.next(), of_found.next()) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if same(wanted, found) => {}
            _ => return false,
        }
    }
}

/// `min_free_kbytes` as a machine of this size would choose it.
/// Source: kernel `mm/page_alloc.c`, `calculate_min_free_kbytes`.
pub fn min_free_kbytes(intended: Bytes) -> u64 {
    ((intended.0 >> 10) * 16).isqrt().clamp(128, 262_144)
}

/// What the arena itself fixes, unless a variant says otherwise: watermarks of a machine of the intended size (the
/// simulated disk's pages count as managed memory and would raise them), and no refusal of large mappings.
pub fn fixed(intended: Bytes, managed: Bytes) -> BTreeMap<String, String> {
    let scale = (10 * intended.0 / managed.0.max(1)).clamp(1, 10);
    BTreeMap::from([
        (
            "vm.min_free_kbytes".to_owned(),
            min_free_kbytes(intended).to_string(),
        ),
        ("vm.watermark_scale_factor".to_owned(), scale.to_string()),
        ("vm.overcommit_memory".to_owned(), "1".to_owned()),
    ])
}

/// Whether a setting is one of the watermarks.
fn is_watermark(name: &str) -> bool {
    name.starts_with("vm.min_free") || name.starts_with("vm.watermark")
}

/// Applies settings and reads each back. Returns what was read, and what did not work.
pub fn apply(settings: &BTreeMap<String, String>) -> (BTreeMap<String, String>, Vec<Invalid>) {
    let mut read = BTreeMap::new();
    let mut invalid = Vec::new();
    // Writing to transparent huge pages raises min_free_kbytes behind our back, so watermarks come last.
    let order = settings
        .iter()
        .filter(|(n, _)| !is_watermark(n))
        .chain(settings.iter().filter(|(n, _)| is_watermark(n)));
    for (name, wanted) in order {
        let refused = |why: String| Invalid::SettingRefused {
            name: name.clone(),
            why,
        };
        let Some(path) = path(name) else {
            invalid.push(refused("its name is of no known form".to_owned()));
            continue;
        };
        if let Err(why) = fs::write(&path, wanted) {
            invalid.push(refused(format!("{}: {why}", path.display())));
        }
    }
    for (name, wanted) in settings {
        let Some(path) = path(name) else { continue };
        let Ok(found) = fs::read_to_string(&path) else {
            continue;
        };
        let found = found.trim().to_owned();
        let refused = invalid
            .iter()
            .any(|reason| matches!(reason, Invalid::SettingRefused { name: n, .. } if n == name));
        if !refused && !stuck(wanted, &found) {
            invalid.push(Invalid::SettingDidNotStick {
                name: name.clone(),
                wanted: wanted.clone(),
                found: found.clone(),
            });
        }
        read.insert(name.clone(), found);
    }
    (read, invalid)
}

/// Reads the known settings that are `wanted`, for the record, whether they were set or not: they explain results.
pub fn survey(wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    KNOWN
        .iter()
        .filter(|name| wanted(name))
        .filter_map(|name| {
            let text = fs::read_to_string(path(name)?).ok()?;
            Some(((*name).to_owned(), text.trim().to_owned()))
        })
        .collect()
}

/// Whether setting one of these moves watermarks behind our back: huge pages raise `min_free_kbytes` (kernel
/// `mm/khugepaged.c`, `set_recommended_min_free_kbytes`), and a pool of huge pages leaves less managed memory.
pub fn move_watermarks<'a>(names: impl IntoIterator<Item = &'a String>) -> bool {
    names.into_iter().any(|name| {
        is_watermark(name)
            || ["thp/", "hugepages/", "vm.nr_", "/"]
                .iter()
                .any(|start| name.starts_with(start))
    })
}

/// Whether setting one of these may change what `name` reads: they lie in one folder, begin with the same word
/// (`vm.dirty_bytes` zeroes `vm.dirty_ratio`), or are watermarks.
pub fn beside<'a>(name: &str, set: impl IntoIterator<Item = &'a String>) -> bool {
    fn stem(name: &str) -> &str {
        match name.rfind('/') {
            Some(slash) => &name[..slash],
            None => name.split_once(['_', '-']).map_or(name, |(word, _)| word),
        }
    }
    let mut set = set.into_iter().peekable();
    (is_watermark(name) && set.peek().is_some())
        || set.any(|other| other.starts_with('/') || stem(other) == stem(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_files() {
        assert_eq!(
            path("vm.swappiness").unwrap(),
            Path::new("/proc/sys/vm/swappiness")
        );
        assert_eq!(
            path("lru_gen/enabled").unwrap(),
            Path::new("/sys/kernel/mm/lru_gen/enabled")
        );
        assert_eq!(
            path("thp/khugepaged/defrag").unwrap(),
            Path::new("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag")
        );
        assert_eq!(
            path("/sys/block/zram0/x").unwrap(),
            Path::new("/sys/block/zram0/x")
        );
        for bad in [
            "swappiness",
            "vm.",
            "net.ipv4.ip_forward",
            "/sys/../etc/passwd",
            "/etc/passwd",
            "lru_gen/",
        ] {
            assert_eq!(path(bad), None, "{bad}");
        }
        for known in KNOWN {
            assert!(path(known).is_some(), "{known}");
        }
    }

    #[test]
    fn values_read_back_are_understood_in_the_kernels_own_spelling() {
        assert!(stuck("madvise", "always [madvise] never"));
        assert!(!stuck("always", "always [madvise] never"));
        assert!(stuck("7", "0x0007"));
        assert!(stuck("y", "0x0007"));
        assert!(!stuck("y", "0x0000"));
        assert!(stuck("1", "Y"));
        assert!(stuck("0", "0x0000"));
        assert!(!stuck("60", "100"));
        assert!(stuck("256 32 0", "256\t32\t0"));
        // swap/vma_ra_enabled takes 0 and 1 and shows words.
        for (yes, no) in [("1", "0"), ("true", "false"), ("Y", "N"), ("on", "off")] {
            for (shows_yes, shows_no) in [("true", "false"), ("Y", "N"), ("1", "0")] {
                assert!(
                    stuck(yes, shows_yes) && stuck(no, shows_no),
                    "{yes} {shows_yes}"
                );
                assert!(
                    !stuck(yes, shows_no) && !stuck(no, shows_yes),
                    "{yes} {shows_no}"
                );
            }
        }
        assert!(stuck("64K", "65536") && stuck("1M", "1024K") && stuck("2G", "2147483648"));
        assert!(!stuck("64K", "64") && !stuck("64K", "65537"));
        assert!(stuck("1", "0 [1] 2") && !stuck("1", "[0] 1 2"));
        assert!(stuck("256 32K", "256 32768") && !stuck("256 32", "256 32 0"));
        assert!(!stuck("lz4", "[lzo] lz4") && !stuck("", "0"));
    }

    #[test]
    fn what_lies_beside_a_setting_is_read_again() {
        let set = ["vm.dirty_bytes".to_owned(), "thp/enabled".to_owned()];
        for (name, again) in [
            ("vm.dirty_ratio", true),
            ("thp/defrag", true),
            ("vm.min_free_kbytes", true),
            ("vm.swappiness", false),
            ("lru_gen/enabled", false),
        ] {
            assert_eq!(beside(name, &set), again, "{name}");
        }
        assert!(!beside("vm.min_free_kbytes", &[]));
        assert!(move_watermarks(&set));
        assert!(!move_watermarks(&["lru_gen/enabled".to_owned()]));
        assert!(move_watermarks(&["/sys/kernel/mm/x".to_owned()]));
    }

    #[test]
    fn watermarks_match_the_intended_machine() {
        assert_eq!(min_free_kbytes(Bytes::from_mib(160)), 1619);
        assert_eq!(
            fixed(Bytes::from_mib(100), Bytes::from_mib(500))["vm.watermark_scale_factor"],
            "2"
        );
    }
}
