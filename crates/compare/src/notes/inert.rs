//! Finds settings that cannot have an effect on a workload, from what the workload does and from the kernel's counters.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_record::{NodesSpec, Record, Subject, SwapSpec};
use serde::Serialize;

use super::differences::Kind;

/// A setting of a variant that cannot have an effect on the workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct InertSetting {
    /// Name of the setting.
    pub setting: String,
    /// The reason, as a clause in a sentence.
    pub why: String,
}

/// Properties of a workload that determine which settings can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and all combinations are possible"
)]
pub struct Workload {
    /// True if the workload may use huge pages, by default or because of its parameter `page-size`. If false, the
    /// workload calls `madvise(MADV_NOHUGEPAGE)` for all its memory.
    pub huge_pages: bool,
    /// True if the workload is known never to call `madvise` about huge pages.
    pub no_advice: bool,
    /// True if the workload is known to call `madvise(MADV_HUGEPAGE)` for all its memory.
    pub advice_for: bool,
    /// True if the workload may have shared anonymous memory or files on a tmpfs.
    pub shared: bool,
    /// True if the workload reads or maps files, so that inodes and dentries are created.
    pub files: bool,
    /// True if the workload writes to files.
    pub writes: bool,
    /// True if the trial has a swap device.
    pub swap: bool,
    /// True if the machine has several NUMA nodes.
    pub nodes: bool,
}

impl Workload {
    /// Returns the properties of a scenario with these parameters. An unknown scenario, and a user's own program, are
    /// assumed to use huge pages and shared memory, and to read and write files. `nodes` is false; [`Self::on`] sets it.
    pub fn of(scenario: &str, params: &BTreeMap<String, String>, swap: SwapSpec) -> Self {
        let is = |name: &str, value: &str| params.get(name).is_some_and(|found| found == value);
        let [huge_pages, shared, files, writes] = match scenario {
            "highalloc" => [true, false, true, true],
            "filecopy" => [false, false, true, true],
            "contswap" | "swapbench" | "fault" | "alloc" | "usemem" | "kv" | "proactive" => {
                [false; 4]
            }
            "neighbours" => [false, false, is("mapping", "file"), false],
            "launches" => [false, false, true, false],
            _ if params.contains_key("pattern") => {
                let files = is("mapping", "file");
                [false, false, files, files && !is("access", "read")]
            }
            _ => [true; 4],
        };
        let advised_against = is("page-size", "small") || !params.contains_key("page-size");
        Self {
            huge_pages: huge_pages || !advised_against,
            no_advice: !huge_pages && is("page-size", "default"),
            advice_for: !huge_pages && is("page-size", "huge"),
            shared,
            files,
            writes,
            swap: swap != SwapSpec::None,
            nodes: false,
        }
    }

    /// Returns these properties with `nodes` set for a machine with these NUMA nodes.
    #[must_use]
    pub fn on(self, nodes: &NodesSpec) -> Self {
        Self {
            nodes: !nodes.is_default(),
            ..self
        }
    }
}

/// Returns why a setting cannot have an effect on a workload; `None` if it can. `value` returns the value of another
/// setting if it is known and the same for all variants.
pub fn cannot_act(
    setting: &str,
    workload: Workload,
    value: &dyn Fn(&str) -> Option<String>,
) -> Option<&'static str> {
    let off = |name: &str| {
        value(name).is_some_and(|text| {
            ["0", "0x0000", "n", "N", "no", "false", "off"].contains(&text.trim())
        })
    };
    let why = match setting {
        _ if setting.starts_with("thp/shmem") && !workload.shared => {
            "the workload shares no memory"
        }
        _ if setting.starts_with("thp/") && !workload.huge_pages => {
            "the workload advises against huge pages for all its memory"
        }
        "vm.compaction_proactiveness"
        | "vm.extfrag_threshold"
        | "vm.compact_unevictable_allowed"
            if !workload.huge_pages =>
        {
            "the workload asks for single pages alone"
        }
        "vm.vfs_cache_pressure" if !workload.files => "the workload uses no files",
        "vm.swappiness" | "vm.page-cluster" if !workload.swap => "there is no swap",
        _ if setting.starts_with("swap/") && !workload.swap => "there is no swap",
        _ if setting.starts_with("zswap/") && !workload.swap => "there is no swap",
        _ if setting.starts_with("zswap/")
            && setting != "zswap/enabled"
            && off("zswap/enabled") =>
        {
            "zswap is off"
        }
        _ if setting.starts_with("lru_gen/")
            && setting != "lru_gen/enabled"
            && off("lru_gen/enabled") =>
        {
            "MGLRU is off"
        }
        _ if setting.starts_with("vm.dirty") && !workload.writes => {
            "the workload writes to no file"
        }
        "vm.overcommit_ratio"
            if value("vm.overcommit_memory").is_none_or(|mode| mode.trim() != "2") =>
        {
            "vm.overcommit_memory is not 2"
        }
        "vm.zone_reclaim_mode" | "kernel.numa_balancing" if !workload.nodes => {
            "the machine has one memory node"
        }
        _ if setting.starts_with("numa/") && !workload.nodes => "the machine has one memory node",
        _ => return None,
    };
    Some(why)
}

/// Returns why two values of a setting have the same effect on a workload. `None` if their effects may differ, or if
/// one of the values is unknown.
pub fn cannot_differ(
    setting: &str,
    workload: Workload,
    values: [Option<&str>; 2],
) -> Option<&'static str> {
    let [a, b] = values;
    let both = [a?.trim(), b?.trim()];
    let are = |same: [&str; 2]| both.iter().all(|value| same.contains(value));
    match setting {
        "thp/enabled" if workload.no_advice && are(["never", "madvise"]) => {
            Some("the workload gives no advice, so that neither value lets it have huge pages")
        }
        "thp/enabled" if workload.advice_for && are(["always", "madvise"]) => {
            Some("the workload advises for huge pages, so that both values let it have them")
        }
        _ => None,
    }
}

/// Returns the counters that grow if the setting has an effect. If none of them grew by more than [`FEW`], it had none.
/// Empty if no such counters are known.
fn counters(setting: &str) -> &'static [&'static str] {
    match setting {
        _ if setting.starts_with("thp/") => &HUGE,
        "vm.swappiness" => &["pswpout", "pgsteal_file", "pgscan_file", "pgscan_anon"],
        "vm.page-cluster" | "swap/vma_ra_enabled" => &["pswpin", "swap_ra"],
        "vm.vfs_cache_pressure" => &["slabs_scanned"],
        "vm.compaction_proactiveness"
        | "vm.extfrag_threshold"
        | "vm.compact_unevictable_allowed" => &[
            "compact_stall",
            "compact_daemon_wake",
            "compact_migrate_scanned",
        ],
        "numa/demotion_enabled" => &[
            "pgdemote_kswapd",
            "pgdemote_direct",
            "pgdemote_khugepaged",
            "pgdemote_proactive",
        ],
        _ if setting.starts_with("vm.dirty") => &["nr_dirtied"],
        _ if setting.starts_with("zswap/") => &["zswpin", "zswpout"],
        _ => &[],
    }
}

/// Counters of huge pages in vmstat.
const HUGE: [&str; 5] = [
    "thp_fault_alloc",
    "thp_collapse_alloc",
    "thp_file_alloc",
    "thp_swpout",
    "thp_fault_fallback",
];

/// Counts up to this value count as zero, because pagetide's guest program itself dirties one or two pages.
const FEW: u64 = 2;

/// True if both records have at least one of these counters, and none of those that they have grew by more than
/// [`FEW`].
fn stayed_zero(names: &[&str], pair: &[Record; 2]) -> bool {
    pair.iter().all(|record| {
        let Some(vmstat) = record.results.counters.get("vmstat") else {
            return false;
        };
        let known: Vec<u64> = names.iter().filter_map(|name| vmstat.delta(name)).collect();
        !known.is_empty() && known.iter().all(|growth| *growth <= FEW)
    })
}

/// True if the counters of both records show that a difference of this kind had no effect. Huge pages and dirty limits
/// must also be unused by the workload; differences in memory and given settings can always have an effect.
pub(super) fn kind_cannot_act(kind: Kind, pair: &[Record; 2]) -> bool {
    let does = pair.each_ref().map(|record| workload(&record.subject));
    let none = |of: &dyn Fn(&Workload) -> bool| !does.iter().any(of);
    match kind {
        Kind::HugePages => none(&|w| w.huge_pages) && stayed_zero(&HUGE, pair),
        Kind::DirtyLimits => none(&|w| w.writes) && stayed_zero(&["nr_dirtied"], pair),
        Kind::Swap => stayed_zero(&["pswpin", "pswpout", "zswpout"], pair),
        Kind::Memory | Kind::Given => false,
    }
}

fn workload(subject: &Subject) -> Workload {
    Workload::of(&subject.scenario, &subject.params, subject.swap).on(&subject.nodes)
}

/// Returns the settings that differ between the variants of two records and cannot have had an effect. `equal` is the
/// number of trials on each side if all of them have the same results as on the other side, in which case no setting
/// had an effect; otherwise `None`.
pub(super) fn of_records(pair: &[Record; 2], equal: Option<usize>) -> Vec<InertSetting> {
    let settings = pair
        .each_ref()
        .map(|record| &record.subject.variant.settings);
    let names: BTreeSet<&String> = settings.iter().flat_map(|s| s.keys()).collect();
    let read = |name: &str| {
        let values = pair
            .each_ref()
            .map(|record| record.results.settings.get(name));
        values[0].filter(|_| values[0] == values[1]).cloned()
    };
    let mut all = Vec::new();
    for name in names {
        if settings[0].get(name) == settings[1].get(name) {
            continue;
        }
        let does = workload(&pair[0].subject);
        let counters = counters(name);
        let found = pair
            .each_ref()
            .map(|record| record.results.settings.get(name).map(String::as_str));
        let known = cannot_act(name, does, &read).or_else(|| cannot_differ(name, does, found));
        let why = match known {
            Some(why) => why.to_owned(),
            None if !counters.is_empty() && stayed_zero(counters, pair) => {
                format!("{} stayed zero on both sides", counters.join(", "))
            }
            None => match equal {
                Some(1) => {
                    "every metric is the same on both sides, in the one seed there is".to_owned()
                }
                Some(seeds) => {
                    format!("every metric is the same on both sides, in each of {seeds} seeds")
                }
                None => continue,
            },
        };
        all.push(InertSetting {
            setting: name.clone(),
            why,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(
        setting: &str,
        scenario: &str,
        params: &[(&str, &str)],
        swap: SwapSpec,
    ) -> Option<&'static str> {
        let params = params
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        cannot_act(setting, Workload::of(scenario, &params, swap), &|name| {
            (name == "zswap/enabled" || name == "lru_gen/enabled").then(|| "N".to_owned())
        })
    }

    #[test]
    fn settings_of_shared_memory_act_only_if_the_workload_may_have_some() {
        let why = |scenario| why("thp/shmem_enabled", scenario, &[], SwapSpec::ZRAM);
        assert_eq!(why("swapbench"), Some("the workload shares no memory"));
        assert_eq!(why("program"), None);
        assert_eq!(why("workload"), None);
    }

    #[test]
    fn settings_of_memory_nodes_act_only_if_there_are_several() {
        let does = Workload::of("linear", &BTreeMap::new(), SwapSpec::ZRAM);
        let several = does.on(&"8M,8M:slow".parse().unwrap());
        for setting in [
            "vm.zone_reclaim_mode",
            "numa/demotion_enabled",
            "numa/policy",
            "kernel.numa_balancing",
        ] {
            let why = cannot_act(setting, does, &|_| None);
            assert_eq!(why, Some("the machine has one memory node"), "{setting}");
            assert_eq!(cannot_act(setting, several, &|_| None), None, "{setting}");
        }
    }

    #[test]
    fn values_of_a_setting_with_the_same_effect_on_a_workload_are_reported() {
        let differ = |page_size: &str, a: Option<&str>, b: Option<&str>| {
            let params = [("page-size", page_size), ("pattern", "linear")];
            let params = params.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let does = Workload::of("linear", &params.into(), SwapSpec::ZRAM);
            cannot_differ("thp/enabled", does, [a, b]).is_none()
        };
        assert!(!differ("default", Some("never"), Some("madvise")));
        assert!(differ("default", Some("never"), Some("always")));
        assert!(!differ("huge", Some("madvise"), Some("always\n")));
        assert!(differ("huge", Some("never"), Some("madvise")));
        assert!(differ("default", None, Some("madvise")));
        assert!(
            differ("small", Some("never"), Some("madvise")),
            "told otherwise"
        );
    }

    #[test]
    fn a_setting_under_which_every_trial_was_the_same_did_not_act() {
        let record = |value: &str| {
            let mut record = Record::default();
            let settings = &mut record.subject.variant.settings;
            settings.insert("thp/enabled".to_owned(), value.to_owned());
            "program".clone_into(&mut record.subject.scenario);
            record
        };
        let pair = [record("never"), record("always")];
        assert_eq!(of_records(&pair, None), []);
        let found = of_records(&pair, Some(8));
        assert_eq!(found[0].setting, "thp/enabled");
        assert!(found[0].why.ends_with("in each of 8 seeds"), "{found:?}");
    }

    #[test]
    fn what_cannot_act_is_named_with_its_reason_and_what_can_is_not() {
        let anon = [
            ("pattern", "linear"),
            ("mapping", "anon"),
            ("access", "write"),
        ];
        let file = [
            ("pattern", "linear"),
            ("mapping", "file"),
            ("access", "write"),
        ];
        let zram = SwapSpec::ZRAM;
        for (setting, scenario, params, swap, acts) in [
            ("thp/enabled", "linear", &anon[..], zram, false),
            ("thp/enabled", "highalloc", &[], zram, true),
            ("vm.vfs_cache_pressure", "linear", &anon, zram, false),
            ("vm.vfs_cache_pressure", "linear", &file, zram, true),
            ("vm.swappiness", "linear", &anon, SwapSpec::None, false),
            ("vm.swappiness", "linear", &anon, zram, true),
            ("vm.page-cluster", "swapbench", &[], SwapSpec::None, false),
            ("zswap/max_pool_percent", "swapbench", &[], zram, false),
            ("zswap/enabled", "swapbench", &[], zram, true),
            ("lru_gen/min_ttl_ms", "swapbench", &[], zram, false),
            ("lru_gen/enabled", "swapbench", &[], zram, true),
            ("vm.compaction_proactiveness", "usemem", &[], zram, false),
            (
                "thp/defrag",
                "usemem",
                &[("page-size", "small")],
                zram,
                false,
            ),
            ("thp/defrag", "usemem", &[("page-size", "huge")], zram, true),
            (
                "vm.compaction_proactiveness",
                "usemem",
                &[("page-size", "default")],
                zram,
                true,
            ),
            ("vm.compaction_proactiveness", "highalloc", &[], zram, true),
            ("vm.dirty_bytes", "usemem", &[], zram, false),
            ("vm.dirty_bytes", "filecopy", &[], zram, true),
            ("thp/enabled", "a scenario of tomorrow", &[], zram, true),
        ] {
            let found = why(setting, scenario, params, swap);
            assert_eq!(found.is_none(), acts, "{setting} {scenario}: {found:?}");
        }
    }
}
