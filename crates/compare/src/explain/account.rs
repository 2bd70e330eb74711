//! Measurements of one side of a comparison, as plain numbers.

use std::collections::BTreeMap;
use std::ops::Deref;

use pagetide_probe::meaning::{Part, RowId};
use serde::Serialize;

/// Name of the metric for contiguity: the share of neighbouring pages that are also neighbours on the swap device.
pub(super) const CONTIGUITY: &str = "contiguity";

/// Numbers by the name of a counter, metric or task.
pub type Amounts = BTreeMap<String, f64>;

/// Measurements of one side of a comparison: means over timed trials, and observed passes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// Number of timed trials over which the means are computed.
    pub trials: usize,
    /// Mean time of a trial from the scenario's start to its end, in nanoseconds.
    pub elapsed: f64,
    /// Mean growth of each vmstat counter over a timed trial.
    pub growth: Amounts,
    /// Mean of each metric over the timed trials that have it, in the unit of the metric; also `free-at-start`, in
    /// bytes.
    pub levels: Amounts,
    /// Settings of the first trial, as read back from the kernel or, if they were not read back, as requested. The kind
    /// of swap is under `swap`, the kernel under `kernel`.
    pub settings: BTreeMap<String, String>,
    /// One account for each timed trial. Trials with the same index on both sides are compared with each other. Empty
    /// if there are no such pairs.
    pub singles: Vec<Account>,
    /// The observed passes. The passes at the same index on both sides are compared with each other.
    pub passes: Vec<ObservedPass>,
}

/// Measurements of one observed pass, with its record.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObservedPass {
    /// ID of the pass's record.
    pub record: String,
    /// Random seed of the pass.
    pub seed: u64,
    /// Measurements of the pass.
    pub observed: PassAccount,
}

/// Measurements of an observed pass, or means over several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PassAccount {
    /// True if the times are those of one task during the operations that the scenario times one by one (attempts);
    /// false if they are those of all tasks.
    pub attempts: bool,
    /// Time by part, in nanoseconds.
    pub times: BTreeMap<Part, f64>,
    /// Number of sleeps by part: within reclaim, within compaction, and uninterruptible sleeps elsewhere.
    pub waits: BTreeMap<Part, f64>,
    /// Longest sleep of each part, in nanoseconds.
    pub longest: BTreeMap<Part, f64>,
    /// Sleeps by place in the kernel, from the stacks at the context switches; each place occurs once.
    pub sites: Vec<SiteTime>,
    /// Time waiting for a CPU, by the kind of task that ran on the CPU, in nanoseconds. Not included, here or in
    /// `times`: waiting for the tracing process, and waiting for other tasks of the workload, whose running time is
    /// counted anyway.
    pub queue: BTreeMap<CpuHolder, f64>,
    /// Time of [`CpuHolder::Other`] by task name, in nanoseconds.
    pub others: Amounts,
    /// Growth of the vmstat counters over this pass.
    pub growth: Amounts,
    /// Metrics of this pass, and `free-at-start`, as in [`Account::levels`].
    pub levels: Amounts,
    /// Values of those rows of the reclaim table that contain a number.
    pub rows: BTreeMap<RowId, f64>,
    /// Mean time of a read request from issue to completion over all devices, in nanoseconds; `None` if there was no
    /// request.
    pub read: Option<f64>,
    /// Mean time of a write request from issue to completion over all devices, in nanoseconds; `None` if there was no
    /// request.
    pub write: Option<f64>,
}

/// Sleeps at one place in the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteTime {
    /// The part of the time that contains these sleeps.
    pub part: Part,
    /// The kernel function that slept and its caller, with what the function waits for if that is known.
    pub site: String,
    /// Number of sleeps.
    pub count: f64,
    /// Total time of these sleeps, in nanoseconds.
    pub time: f64,
}

/// Kind of task that ran on a CPU while a task of the workload waited for that CPU. Other tasks of the workload are not
/// included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuHolder {
    /// The kernel thread kswapd.
    Kswapd,
    /// The kernel thread kcompactd.
    Kcompactd,
    /// Any other task that does not belong to the workload.
    Other,
}

/// Measurements of a side with one of its observed passes, or with the mean of several.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideView<'a> {
    /// Measurements of the side.
    pub account: &'a Account,
    /// The observed pass, or the mean of several passes; `None` if there is none.
    pub observed: Option<&'a PassAccount>,
}

impl Deref for SideView<'_> {
    type Target = Account;

    fn deref(&self) -> &Account {
        self.account
    }
}

impl Account {
    /// Returns the measurements of this side together with an observed pass.
    pub(super) const fn seen<'a>(&'a self, observed: Option<&'a PassAccount>) -> SideView<'a> {
        SideView {
            account: self,
            observed,
        }
    }
}

impl PassAccount {
    /// Returns the mean of several passes; `None` if there are none. Rows of the reclaim table and metrics that are
    /// missing in any pass are omitted. The time of a request is the mean over the passes that had requests.
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

    /// Returns the time of a part, in nanoseconds.
    pub fn time(&self, part: Part) -> f64 {
        self.times.get(&part).copied().unwrap_or(0.0)
    }

    /// Returns the number of sleeps in a part.
    pub fn slept(&self, part: Part) -> f64 {
        self.waits.get(&part).copied().unwrap_or(0.0)
    }

    /// Returns the number and total time (in nanoseconds) of the sleeps of a part at this place in the kernel.
    pub fn slept_in(&self, part: Part, site: &str) -> [f64; 2] {
        let mut here = self.sites.iter();
        here.find(|here| here.part == part && here.site == site)
            .map_or([0.0; 2], |here| [here.count, here.time])
    }

    /// True if stacks show the place of at least nine tenths of the sleep time of a part.
    pub fn knows_sites(&self, part: Part) -> bool {
        let of_part = self.sites.iter().filter(|site| site.part == part);
        of_part.map(|site| site.time).sum::<f64>() >= KNOWN * self.time(part)
    }

    /// Returns the time of all tasks except voluntary sleep, in nanoseconds. A voluntary sleep is a pause of the
    /// scenario, or a process waiting for another process whose time is counted anyway.
    pub fn active(&self) -> f64 {
        self.times
            .iter()
            .filter(|(part, _)| **part != Part::Sleep)
            .map(|(_, time)| time)
            .sum()
    }
}

/// Share of the sleep time of a part for which the place in the kernel must be known. With less, the cause of a
/// difference may be in sleeps at unknown places.
const KNOWN: f64 = 0.9;

/// Merges sleeps at the same place, and sorts them by time, longest first. Times and counts are multiplied by `share`.
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

/// Returns the mean for each name over several maps; a number missing from a map counts as zero.
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

/// Returns the mean of the known values; `None` if none is known.
fn mean_known(all: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = all.flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// Names of the counters of direct reclaims, one for each zone type.
pub(super) const STALLS: [&str; 5] = [
    "allocstall_dma",
    "allocstall_dma32",
    "allocstall_normal",
    "allocstall_movable",
    "allocstall_device",
];
/// Counters of pages reclaimed directly, by tasks that allocate memory and by khugepaged.
pub(super) const STOLEN_DIRECT: [&str; 2] = ["pgsteal_direct", "pgsteal_khugepaged"];
/// Counters of pages scanned directly, by tasks that allocate memory and by khugepaged.
pub(super) const SCANNED_DIRECT: [&str; 2] = ["pgscan_direct", "pgscan_khugepaged"];
/// Counters of pages reclaimed by any task.
pub(super) const STOLEN: [&str; 2] = ["pgsteal_anon", "pgsteal_file"];
/// Counters of pages scanned by any task.
pub(super) const SCANNED: [&str; 2] = ["pgscan_anon", "pgscan_file"];

/// Number of KiB in a page; `pgpgin` counts KiB.
const KIB_IN_PAGE: f64 = 4.0;

/// Growth of counters, and quantities derived from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CounterGrowth<'a>(pub &'a Amounts);

impl CounterGrowth<'_> {
    /// Returns the growth of one counter; 0 if the kernel does not have it.
    pub fn get(self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// Returns the sum of the growth of several counters.
    pub fn sum(self, names: &[&str]) -> f64 {
        names.iter().map(|name| self.get(name)).sum()
    }

    /// Returns the number of pages that were read ahead from swap but never used.
    fn in_vain(self) -> f64 {
        (self.get("swap_ra") - self.get("swap_ra_hit")).max(0.0)
    }

    /// Returns the number of needed pages that were read from devices, without unused read-ahead from swap. The number
    /// of major faults is the minimum.
    pub fn back(self) -> f64 {
        let read = (self.get("pgpgin") / KIB_IN_PAGE).max(self.get("pswpin"));
        (read - self.in_vain()).max(self.get("pgmajfault"))
    }

    /// Returns the number of needed pages that were read from swap. Unused read-ahead is subtracted.
    pub fn swapped_back(self) -> f64 {
        (self.get("pswpin") - self.in_vain()).max(0.0)
    }

    /// True if most refaulted pages came in through page faults, so that the number of faults is close to the number of
    /// waits. False if files are mostly read by system calls.
    pub fn waits_known(self) -> bool {
        self.faults_back() >= 0.5 * self.back()
    }

    /// Returns the number of faults whose page came from a device, either at the fault or by read-ahead from swap.
    pub fn faults_back(self) -> f64 {
        self.get("pgmajfault") + self.get("swap_ra_hit")
    }

    /// Returns the number of faults whose page did not come from a device.
    pub fn faults_other(self) -> f64 {
        (self.get("pgfault") - self.faults_back()).max(0.0)
    }

    /// Returns the number of pages reclaimed by any task.
    pub fn stolen(self) -> f64 {
        self.sum(&STOLEN)
    }
}
