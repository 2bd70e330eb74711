//! Settings that cannot act on a workload, from what the workload does and from what the kernel counted.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_record::{Record, Subject, SwapSpec};
use serde::Serialize;

use super::also::Kind;

/// A setting that was asked for and cannot act.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct InertSetting {
    /// Its name.
    pub setting: String,
    /// Why, as a clause.
    pub why: String,
}

/// What a workload does, as far as settings act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and all combinations are possible"
)]
pub struct Workload {
    /// Whether it takes huge pages where the kernel gives them: by its nature, or by its parameter page-size. Others advise
    /// against them for all their memory.
    pub huge_pages: bool,
    /// Whether it advises neither for huge pages nor against them, all of its memory alike.
    pub no_advice: bool,
    /// Whether it advises for huge pages for all of its memory.
    pub advice_for: bool,
    /// Whether it reads or maps files, so that inodes and dentries come into being.
    pub files: bool,
    /// Whether it writes to files.
    pub writes: bool,
    /// Whether anything is swapped to.
    pub swap: bool,
}

impl Workload {
    /// What a scenario does with these parameters. Of one that is not known anything is assumed.
    pub fn of(scenario: &str, params: &BTreeMap<String, String>, swap: SwapSpec) -> Self {
        let is = |name: &str, value: &str| params.get(name).is_some_and(|found| found == value);
        let [huge_pages, files, writes] = match scenario {
            "highalloc" => [true, true, true],
            "filecopy" => [false, true, true],
            "contswap" | "swapbench" | "fault" | "alloc" | "usemem" | "kv" => [false; 3],
            _ if params.contains_key("pattern") => {
                let files = is("mapping", "file");
                [false, files, files && !is("access", "read")]
            }
            _ => [true; 3],
        };
        let advised_against = is("page-size", "small") || !params.contains_key("page-size");
        Self {
            huge_pages: huge_pages || !advised_against,
            no_advice: !huge_pages && is("page-size", "default"),
            advice_for: !huge_pages && is("page-size", "huge"),
            files,
            writes,
            swap: swap != SwapSpec::None,
        }
    }
}

/// Why a setting cannot act on a workload; `None` where it can. `value` is what the variants set the other settings to,
/// by name, where all of them agree.
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
        _ if setting.starts_with("thp/shmem") => "the workload shares no memory",
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
        "vm.zone_reclaim_mode" => "the machine has one memory node",
        _ => return None,
    };
    Some(why)
}

/// Why two values of a setting do the same for a workload; `None` where they may not, or where one is not known.
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

/// Counters that a setting moves; where all of them stayed zero it did nothing.
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
        _ if setting.starts_with("vm.dirty") => &["nr_dirtied"],
        _ if setting.starts_with("zswap/") => &["zswpin", "zswpout"],
        _ => &[],
    }
}

/// Counters of huge pages.
const HUGE: [&str; 5] = [
    "thp_fault_alloc",
    "thp_collapse_alloc",
    "thp_file_alloc",
    "thp_swpout",
    "thp_fault_fallback",
];

/// What counts as zero: a page or two are dirtied by pagetide's own guest program.
const FEW: u64 = 2;

/// Whether some of these counters are known on both sides, and all of those stayed zero.
fn stayed_zero(names: &[&str], pair: &[Record; 2]) -> bool {
    pair.iter().all(|record| {
        let Some(vmstat) = record.results.counters.get("vmstat") else {
            return false;
        };
        let known: Vec<u64> = names.iter().filter_map(|name| vmstat.delta(name)).collect();
        !known.is_empty() && known.iter().all(|growth| *growth <= FEW)
    })
}

/// Whether what differs between two sides cannot have acted: the workload does not use it, and the counters say the same.
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
    Workload::of(&subject.scenario, &subject.params, subject.swap)
}

/// Settings that differ between the variants of two records and cannot have acted. `equal` says how many trials of both sides
/// are equal in every metric, where all are: then none of them acted, whatever else is known.
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
    fn values_of_a_setting_that_do_the_same_for_a_workload_are_told_so() {
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
