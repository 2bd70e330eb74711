//! Settings by name: finds the file of a setting, applies a value, checks that the kernel accepted it, and restores the
//! old value.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;
use pagetide_record::nodes::POLICY;
use pagetide_record::outcome::Invalid;
use pagetide_record::setting::means;

use crate::error::HarnessError;
use crate::fate::MachineFate;

/// Short prefixes of setting names, each with the folder in sysfs that it stands for.
const FOLDERS: [(&str, &str); 7] = [
    ("lru_gen/", "/sys/kernel/mm/lru_gen/"),
    ("thp/", "/sys/kernel/mm/transparent_hugepage/"),
    ("ksm/", "/sys/kernel/mm/ksm/"),
    ("numa/", "/sys/kernel/mm/numa/"),
    ("swap/", "/sys/kernel/mm/swap/"),
    ("zswap/", "/sys/module/zswap/parameters/"),
    ("hugepages/", "/sys/kernel/mm/hugepages/"),
];

/// First parts of dotted sysctl names that are allowed in a trial.
const SYSCTLS: [&str; 3] = ["vm", "kernel", "fs"];

/// Names of common settings, for suggestions, and for the settings that each record contains.
pub const KNOWN: [&str; 31] = [
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
    "zswap/shrinker_enabled",
    OF_NODES[0],
    OF_NODES[1],
    OF_NODES[2],
];

/// Names of the settings that have an effect only on a machine with several memory nodes. They are not read on other
/// machines.
const OF_NODES: [&str; 3] = ["numa/demotion_enabled", "kernel.numa_balancing", POLICY];

/// Returns true if the setting has an effect only on a machine with several memory nodes.
pub fn is_of_nodes(name: &str) -> bool {
    OF_NODES.contains(&name)
}

/// Returns the path of the file of a setting; `None` if the name is not in a known form.
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

/// Returns the kernel's default of `min_free_kbytes`, in KiB, for a machine with `intended` bytes of memory. Source:
/// kernel `mm/page_alloc.c`, `calculate_min_free_kbytes`.
pub fn min_free_kbytes(intended: Bytes) -> u64 {
    ((intended.0 >> 10) * 16).isqrt().clamp(128, 262_144)
}

/// Returns the settings that are always applied unless the variant sets them: watermarks and overcommit. The watermarks
/// are those of a machine of size `intended`, even if the kernel manages more memory (`managed`). Overcommit is always
/// allowed, so that large mappings succeed.
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

/// Minimum memory of a machine on which the kernel uses transparent huge pages by default. Source: kernel
/// `mm/huge_memory.c`, `hugepage_init`.
const HUGE_PAGES_FROM: Bytes = Bytes::from_mib(512);

/// Returns the settings that the kernel sets when it boots on a machine of size `intended`, and does not derive again
/// when its count of memory changes: no huge pages below [`HUGE_PAGES_FROM`]. Empty for a larger machine. The caller
/// must leave out settings whose files the kernel lacks.
pub fn derived(intended: Bytes) -> BTreeMap<String, String> {
    let off = [
        ("thp/enabled", "never"),
        ("thp/defrag", "never"),
        ("thp/use_zero_page", "0"),
        ("thp/khugepaged/defrag", "0"),
    ];
    off.into_iter()
        .filter(|_| intended < HUGE_PAGES_FROM)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Settings to write again with their current value, so that the kernel derives further limits from the size of memory.
/// These limits are the reserves between zones, and the free memory that the kernel keeps for huge pages (kernel
/// `mm/khugepaged.c`, `set_recommended_min_free_kbytes`). The settings must be written in this order, after the
/// watermarks.
pub const REDERIVE: [&str; 2] = ["vm.lowmem_reserve_ratio", "thp/enabled"];

/// Returns true if the setting affects the watermarks directly, such as `vm.min_free_kbytes`.
fn is_watermark(name: &str) -> bool {
    name.starts_with("vm.min_free") || name.starts_with("vm.watermark")
}

/// Access to the settings of a machine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Folder that contains `/proc` and `/sys`.
    root: PathBuf,
    fate: MachineFate,
}

/// Settings that were applied. On a machine that continues, the old values are restored on drop.
#[derive(Debug)]
#[must_use = "settings are restored when this is dropped"]
pub struct AppliedSettings {
    /// Value of each setting as read back after it was applied, by name.
    pub read: BTreeMap<String, String>,
    /// Settings that could not be applied, each with the reason.
    pub refused: Vec<Invalid>,
    /// Paths of files and the values to restore, in order; empty if the machine ends with the trial.
    before: Vec<(PathBuf, String)>,
}

impl Settings {
    /// Returns access to the settings of the running machine.
    pub fn of_machine(fate: MachineFate) -> Self {
        Self::below("/", fate)
    }

    /// Returns access to the settings in the `/proc` and `/sys` below the folder `root`, as in a container or a test.
    pub fn below(root: impl Into<PathBuf>, fate: MachineFate) -> Self {
        Self {
            root: root.into(),
            fate,
        }
    }

    /// Returns the path of the file of a setting below `root`; `None` if the name is not in a known form.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let path = path(name)?;
        Some(self.root.join(path.strip_prefix("/").unwrap_or(&path)))
    }

    /// Writes the current value of a setting again, so that the kernel repeats the effects of a write. Does nothing on
    /// a kernel that lacks the setting.
    pub fn rewrite(&self, name: &str) {
        if let Some(found) = self.read(name) {
            // The kernel accepts its own value, and the setting is read back with the others.
            let _ = self.write(name, writable(&found));
        }
    }

    /// Returns the current value of a setting; `None` if its file cannot be read.
    pub fn read(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.file(name)?).ok()?;
        Some(text.trim().to_owned())
    }

    /// Applies settings and reads each of them back. On a machine that continues, a setting that cannot be read is
    /// refused, because its old value could not be restored.
    pub fn apply(&self, settings: &BTreeMap<String, String>) -> AppliedSettings {
        let mut applied = AppliedSettings {
            read: BTreeMap::new(),
            refused: Vec::new(),
            before: self.before(settings),
        };
        // Writing a setting of transparent huge pages raises min_free_kbytes as a side effect, so watermarks are
        // written last.
        let order = settings
            .iter()
            .filter(|(n, _)| !is_watermark(n))
            .chain(settings.iter().filter(|(n, _)| is_watermark(n)));
        for (name, wanted) in order {
            if let Err(why) = self.write(name, wanted) {
                let name = name.clone();
                applied.refused.push(Invalid::SettingRefused { name, why });
            }
        }
        for (name, wanted) in settings {
            let Some(found) = self.read(name) else {
                continue;
            };
            let refused = applied.refused.iter().any(
                |reason| matches!(reason, Invalid::SettingRefused { name: n, .. } if n == name),
            );
            if !refused && !means(&found, wanted) {
                applied.refused.push(Invalid::SettingDidNotStick {
                    name: name.clone(),
                    wanted: wanted.clone(),
                    found: found.clone(),
                });
            }
            applied.read.insert(name.clone(), found);
        }
        applied
    }

    fn write(&self, name: &str, wanted: &str) -> Result<(), String> {
        let path = self.file(name).ok_or("its name is of no known form")?;
        if self.fate == MachineFate::Continues && self.read(name).is_none() {
            return Err("it cannot be read, so it could not be restored".to_owned());
        }
        fs::write(&path, wanted).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Returns paths and current values of the files to restore after `settings` are applied, including settings that
    /// change as a side effect. Empty if the machine ends with the trial.
    pub fn before(&self, settings: &BTreeMap<String, String>) -> Vec<(PathBuf, String)> {
        if self.fate == MachineFate::Ends {
            return Vec::new();
        }
        let set = settings.keys().map(String::as_str);
        let neighbours = KNOWN.into_iter().filter(|name| {
            beside(name, settings.keys())
                || (is_watermark(name) && move_watermarks(settings.keys()))
        });
        let mut names: Vec<&str> = set.chain(neighbours).collect();
        // Watermarks are restored last, because they are set last.
        names.sort_unstable_by_key(|name| (is_watermark(name), *name));
        names.dedup();
        names
            .into_iter()
            .filter_map(|name| Some((self.file(name)?, writable(&self.read(name)?).to_owned())))
            .collect()
    }

    /// Reads those of the common settings ([`KNOWN`]) for which `wanted` returns true, for the record, whether the
    /// trial sets them or not.
    pub fn survey(&self, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        KNOWN
            .iter()
            .filter(|name| wanted(name))
            .filter_map(|name| Some(((*name).to_owned(), self.read(name)?)))
            .collect()
    }
}

impl AppliedSettings {
    /// Restores the settings. Fails if a setting does not have its old value afterwards.
    fn put_back(&mut self) -> Result<(), HarnessError> {
        let before = std::mem::take(&mut self.before);
        let differs = |(path, value): &&(PathBuf, String)| {
            fs::read_to_string(path).map_or(true, |found| !means(&found, value))
        };
        // Written twice, because one setting may reset another: `vm.dirty_bytes` cannot be set to zero directly, but
        // writing `vm.dirty_ratio` does so.
        for _ in 0..2 {
            for (path, value) in before.iter().filter(differs) {
                // The values are checked below.
                let _ = fs::write(path, value);
            }
        }
        match before.iter().find(differs) {
            Some((path, _)) => Err(HarnessError::NotRestored(path.display().to_string())),
            None => Ok(()),
        }
    }
}

impl Drop for AppliedSettings {
    fn drop(&mut self) {
        // Errors cannot be reported from a drop.
        let _ = self.put_back();
    }
}

/// Returns the part of a setting's content that can be written back. In a list of choices this is the one in brackets.
fn writable(found: &str) -> &str {
    found
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or(found)
}

/// Returns true if one of the settings may change watermarks, also as a side effect. Huge pages raise `min_free_kbytes`
/// (kernel `mm/khugepaged.c`), a pool of huge pages may change managed memory, and a path may be that of any setting.
pub fn move_watermarks<'a>(names: impl IntoIterator<Item = &'a String>) -> bool {
    names.into_iter().any(|name| {
        is_watermark(name)
            || ["thp/", "hugepages/", "vm.nr_", "/"]
                .iter()
                .any(|start| name.starts_with(start))
    })
}

/// Returns true if one of the settings in `set` may change the value of the setting `name` as a side effect. This is
/// assumed of a setting in the same folder, of one whose name begins with the same word (`vm.dirty_bytes` zeroes
/// `vm.dirty_ratio`), and of one given as a path. A watermark may be changed by any setting.
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
    fn huge_pages_are_off_on_a_small_machine() {
        assert_eq!(derived(Bytes::from_mib(511))["thp/enabled"], "never");
        assert!(derived(Bytes::from_mib(512)).is_empty());
    }

    #[test]
    fn watermarks_match_the_intended_machine() {
        assert_eq!(min_free_kbytes(Bytes::from_mib(160)), 1619);
        assert_eq!(
            fixed(Bytes::from_mib(100), Bytes::from_mib(500))["vm.watermark_scale_factor"],
            "2"
        );
    }

    /// Returns a folder of settings for tests, with files as the kernel shows them, and a function that reads one.
    fn tree() -> (tempfile::TempDir, impl Fn(&str) -> String) {
        let folder = tempfile::tempdir().unwrap();
        for (name, value) in [
            ("vm.swappiness", "60\n"),
            ("vm.min_free_kbytes", "1619\n"),
            ("thp/enabled", "always [madvise] never\n"),
            ("lru_gen/enabled", "0x0007\n"),
        ] {
            let file = folder
                .path()
                .join(path(name).unwrap().strip_prefix("/").unwrap());
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, value).unwrap();
        }
        let root = folder.path().to_owned();
        let read = move |name: &str| {
            let file = root.join(path(name).unwrap().strip_prefix("/").unwrap());
            fs::read_to_string(file).unwrap().trim().to_owned()
        };
        (folder, read)
    }

    fn wanted(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_machine_that_goes_on_gets_its_settings_back_when_the_guard_is_dropped() {
        let (folder, read) = tree();
        let settings = Settings::below(folder.path(), MachineFate::Continues);
        let applied = settings.apply(&wanted(&[
            ("vm.swappiness", "1"),
            ("thp/enabled", "never"),
            ("lru_gen/enabled", "0"),
        ]));
        assert_eq!(applied.refused, []);
        assert_eq!(applied.read["vm.swappiness"], "1");
        assert_eq!(read("lru_gen/enabled"), "0");
        // A side effect of the kernel when huge pages are set.
        let raised = folder.path().join("proc/sys/vm/min_free_kbytes");
        fs::write(&raised, "67584").unwrap();
        drop(applied);
        assert_eq!(read("vm.swappiness"), "60");
        assert_eq!(read("thp/enabled"), "madvise");
        assert_eq!(read("lru_gen/enabled"), "0x0007");
        assert_eq!(read("vm.min_free_kbytes"), "1619");
    }

    #[test]
    fn settings_are_restored_where_a_trial_panics() {
        let (folder, read) = tree();
        let root = folder.path().to_owned();
        let ended = std::thread::spawn(move || {
            let settings = Settings::below(root, MachineFate::Continues);
            let _applied = settings.apply(&wanted(&[("vm.swappiness", "1")]));
            panic!("in the middle of a trial");
        });
        assert!(ended.join().is_err());
        assert_eq!(read("vm.swappiness"), "60");
    }

    #[test]
    fn a_machine_that_ends_is_left_as_it_is() {
        let (folder, read) = tree();
        let settings = Settings::below(folder.path(), MachineFate::Ends);
        drop(settings.apply(&wanted(&[("vm.swappiness", "1")])));
        assert_eq!(read("vm.swappiness"), "1");
    }

    #[test]
    fn what_cannot_be_read_is_refused_only_where_it_would_have_to_be_restored() {
        for (fate, refusals) in [(MachineFate::Continues, 1), (MachineFate::Ends, 0)] {
            let (folder, _) = tree();
            let settings = Settings::below(folder.path(), fate);
            let applied = settings.apply(&wanted(&[("vm.compact_memory", "1")]));
            assert_eq!(applied.refused.len(), refusals, "{:?}", applied.refused);
            let written = folder.path().join("proc/sys/vm/compact_memory").exists();
            assert_eq!(written, refusals == 0);
        }
    }

    #[test]
    fn a_setting_that_cannot_be_restored_is_named() {
        let (folder, _) = tree();
        let settings = Settings::below(folder.path(), MachineFate::Continues);
        let mut applied = settings.apply(&wanted(&[("vm.swappiness", "1")]));
        let file = folder.path().join("proc/sys/vm/swappiness");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        let why = applied.put_back().unwrap_err().to_string();
        assert!(why.contains("vm/swappiness"), "{why}");
    }
}
