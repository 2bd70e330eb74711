//! What is known of one side of a comparison, as plain numbers.

use std::collections::BTreeMap;
use std::ops::Deref;

use pagetide_probe::meaning::{Part, RowId};
use serde::Serialize;

/// The level that tells the share of neighbouring pages which are neighbours on the swap device.
pub(super) const CONTIGUITY: &str = "contiguity";

/// Amounts by name.
pub type Amounts = BTreeMap<String, f64>;

/// What is known of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// Timed trials that the means are of.
    pub trials: usize,
    /// Mean time of a trial from the scenario's start to its end, in nanoseconds.
    pub elapsed: f64,
    /// Mean growth of the vmstat counters over a timed trial.
    pub growth: Amounts,
    /// Means of what does not grow: metrics in their own unit, `free-at-start` in bytes.
    pub levels: Amounts,
    /// Settings as read back, and the swap device as `swap`.
    pub settings: BTreeMap<String, String>,
    /// Its timed trials one by one, each in the place of that which it is set against on the other side; empty where they
    /// have no such order.
    pub singles: Vec<Account>,
    /// Its observed passes, each in the place of that which it is set against on the other side.
    pub passes: Vec<ObservedPass>,
}

/// An observed pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObservedPass {
    /// Identity of its record.
    pub record: String,
    /// Its seed.
    pub seed: u64,
    /// What it tells.
    pub observed: PassAccount,
}

/// What an observed pass tells, or the mean of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PassAccount {
    /// Whether that is one task's time within the attempts which the scenario times.
    pub attempts: bool,
    /// Where their time went, in nanoseconds.
    pub times: BTreeMap<Part, f64>,
    /// How often tasks slept within reclaim, within compaction, and uninterruptibly elsewhere.
    pub waits: BTreeMap<Part, f64>,
    /// The longest of those sleeps, in nanoseconds.
    pub longest: BTreeMap<Part, f64>,
    /// Where they slept, by the stacks at their switches: each place once.
    pub sites: Vec<SiteTime>,
    /// Waiting for a CPU, by what had it, in nanoseconds. The observer's own time, and waiting for other tasks of the workload
    /// (which counts as theirs), is neither here nor in `times`.
    pub queue: BTreeMap<CpuHolder, f64>,
    /// What of that other tasks had, by their names, in nanoseconds.
    pub others: Amounts,
    /// Growth of the vmstat counters over this very pass.
    pub growth: Amounts,
    /// Means of what does not grow, as [`Account::levels`], in this very pass.
    pub levels: Amounts,
    /// Rows of the reclaim table that have a number.
    pub rows: BTreeMap<RowId, f64>,
    /// Mean time of a read request from issue to completion, in nanoseconds, over all devices; `None` without any.
    pub read: Option<f64>,
    /// The same of a write request.
    pub write: Option<f64>,
}

/// Sleeps in one place of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteTime {
    /// The part of the time they are in.
    pub part: Part,
    /// The function that slept, and where it was called from.
    pub site: String,
    /// How many.
    pub count: f64,
    /// All together, in nanoseconds.
    pub time: f64,
}

/// What had the CPU for which a task of the workload waited, other than another such task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuHolder {
    /// kswapd.
    Kswapd,
    /// kcompactd.
    Kcompactd,
    /// Any other task.
    Other,
}

/// A side as one of its observed passes shows it, or their mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideView<'a> {
    /// The side.
    pub account: &'a Account,
    /// What was observed.
    pub observed: Option<&'a PassAccount>,
}

impl Deref for SideView<'_> {
    type Target = Account;

    fn deref(&self) -> &Account {
        self.account
    }
}

impl Account {
    /// With what was observed beside it.
    pub(super) const fn seen<'a>(&'a self, observed: Option<&'a PassAccount>) -> SideView<'a> {
        SideView {
            account: self,
            observed,
        }
    }
}

impl PassAccount {
    /// The mean of several passes; `None` of none. A row that not every pass tells is left out; a request's time is the
    /// mean over the passes that had one.
    pub(super) fn mean<'a>(passes: impl Iterator<Item = &'a Self> + Clone) -> Option<Self> {
        let first = passes.clone().next()?;
        Some(Self {
            attempts: first.attempts,
            times: mean_of(passes.clone().map(|pass| &pass.times)),
            waits: mean_of(passes.clone().map(|pass| &pass.waits)),
            longest: mean_of(passes.clone().map(|pass| &pass.longest)),
            sites: {
                let share = 1.0 / passes.clone().count().max(1) as f64;
                together(passes.clone().flat_map(|pass| &pass.sites), share)
            },
            queue: mean_of(passes.clone().map(|pass| &pass.queue)),
            others: mean_of(passes.clone().map(|pass| &pass.others)),
            growth: mean_of(passes.clone().map(|pass| &pass.growth)),
            levels: {
                let mut levels = mean_of(passes.clone().map(|pass| &pass.levels));
                levels.retain(|name, _| passes.clone().all(|pass| pass.levels.contains_key(name)));
                levels
            },
            rows: {
                let mut rows = mean_of(passes.clone().map(|pass| &pass.rows));
                rows.retain(|row, _| passes.clone().all(|pass| pass.rows.contains_key(row)));
                rows
            },
            read: mean_known(passes.clone().map(|pass| pass.read)),
            write: mean_known(passes.map(|pass| pass.write)),
        })
    }

    /// Time of a part, in nanoseconds.
    pub fn time(&self, part: Part) -> f64 {
        self.times.get(&part).copied().unwrap_or(0.0)
    }

    /// How often tasks slept in a part.
    pub fn slept(&self, part: Part) -> f64 {
        self.waits.get(&part).copied().unwrap_or(0.0)
    }

    /// Sleeps of a part in this place.
    pub fn slept_in(&self, part: Part, site: &str) -> [f64; 2] {
        let mut here = self.sites.iter();
        here.find(|here| here.part == part && here.site == site)
            .map_or([0.0; 2], |here| [here.count, here.time])
    }

    /// Whether stacks tell the place of (nearly) all sleeps of a part.
    pub fn knows_sites(&self, part: Part) -> bool {
        let of_part = self.sites.iter().filter(|site| site.part == part);
        of_part.map(|site| site.time).sum::<f64>() >= KNOWN * self.time(part)
    }

    /// Time of all tasks, voluntary sleep left out: that is pauses of the scenario, and one process waiting for another
    /// whose time counts itself.
    pub fn active(&self) -> f64 {
        self.times
            .iter()
            .filter(|(part, _)| **part != Part::Sleep)
            .map(|(_, time)| time)
            .sum()
    }
}

/// With stacks of less than this share of the time slept, the rest could be the cause.
const KNOWN: f64 = 0.9;

/// Sleeps by place, each place once, longest first; times and numbers are multiplied by `share`.
pub(super) fn together<'a>(all: impl Iterator<Item = &'a SiteTime>, share: f64) -> Vec<SiteTime> {
    let mut by_site: BTreeMap<(Part, &str), [f64; 2]> = BTreeMap::new();
    for one in all {
        let sums = by_site.entry((one.part, &one.site)).or_default();
        sums[0] += one.count * share;
        sums[1] += one.time * share;
    }
    let mut sites: Vec<SiteTime> = by_site
        .into_iter()
        .map(|((part, site), [count, time])| SiteTime {
            part,
            site: site.to_owned(),
            count,
            time,
        })
        .collect();
    sites.sort_by(|x, y| y.time.total_cmp(&x.time));
    sites
}

/// Means of amounts; what is not among some of them counts as nothing there.
pub(super) fn mean_of<'a, K: Clone + Ord + 'a>(
    all: impl Iterator<Item = &'a BTreeMap<K, f64>> + Clone,
) -> BTreeMap<K, f64> {
    let share = 1.0 / all.clone().count().max(1) as f64;
    let mut means = BTreeMap::new();
    for (name, amount) in all.flatten() {
        *means.entry(name.clone()).or_insert(0.0) += amount * share;
    }
    means
}

/// The mean of what is known; `None` where nothing is.
fn mean_known(all: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = all.flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// Counters of direct reclaims; the kernel counts each zone apart.
pub(super) const STALLS: [&str; 5] = [
    "allocstall_dma",
    "allocstall_dma32",
    "allocstall_normal",
    "allocstall_movable",
    "allocstall_device",
];
/// Pages reclaimed by tasks that wanted memory.
pub(super) const STOLEN_DIRECT: [&str; 2] = ["pgsteal_direct", "pgsteal_khugepaged"];
/// Pages scanned by tasks that wanted memory.
pub(super) const SCANNED_DIRECT: [&str; 2] = ["pgscan_direct", "pgscan_khugepaged"];
/// Pages reclaimed by anybody.
pub(super) const STOLEN: [&str; 2] = ["pgsteal_anon", "pgsteal_file"];
/// Pages scanned by anybody.
pub(super) const SCANNED: [&str; 2] = ["pgscan_anon", "pgscan_file"];

/// KiB in a page, which is the unit of `pgpgin`.
const KIB_IN_PAGE: f64 = 4.0;

/// Quantities that counters tell together.
#[derive(Clone, Copy, Debug)]
pub(super) struct CounterGrowth<'a>(pub &'a Amounts);

impl CounterGrowth<'_> {
    /// Growth of one counter; 0 where the kernel has none.
    pub fn get(self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// Growth of several.
    pub fn sum(self, names: &[&str]) -> f64 {
        names.iter().map(|name| self.get(name)).sum()
    }

    /// Pages read ahead from swap that nobody used.
    fn in_vain(self) -> f64 {
        (self.get("swap_ra") - self.get("swap_ra_hit")).max(0.0)
    }

    /// Pages read from devices that are there on request: what was read ahead from swap in vain is left out.
    pub fn back(self) -> f64 {
        let read = (self.get("pgpgin") / KIB_IN_PAGE).max(self.get("pswpin"));
        (read - self.in_vain()).max(self.get("pgmajfault"))
    }

    /// Of the pages that are back, those that came from swap.
    pub fn swapped_back(self) -> f64 {
        (self.get("pswpin") - self.in_vain()).max(0.0)
    }

    /// Whether faults brought most of the pages that came back, so that their number tells that of the waits. It does not
    /// where files are read by system call.
    pub fn waits_known(self) -> bool {
        self.faults_back() >= 0.5 * self.back()
    }

    /// Faults whose page came from a device, at once or ahead.
    pub fn faults_back(self) -> f64 {
        self.get("pgmajfault") + self.get("swap_ra_hit")
    }

    /// All other faults.
    pub fn faults_other(self) -> f64 {
        (self.get("pgfault") - self.faults_back()).max(0.0)
    }

    /// Pages reclaimed.
    pub fn stolen(self) -> f64 {
        self.sum(&STOLEN)
    }
}
