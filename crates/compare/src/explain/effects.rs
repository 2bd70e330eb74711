//! Attributes the differences between two observed passes to mechanisms: the difference of each part is divided among
//! the factors of the part.
//!
//! A part is a count times a cost, or a chain of such products. Time waiting for I/O is *pages that were needed again*
//! × *waits per page* × *time per wait*; the mechanisms of these factors are eviction choice, read-ahead and the
//! device. Reclaim is *pages reclaimed* × *share reclaimed by the workload itself* × *pages scanned per reclaimed page*
//! × *time per scanned page*. For every page that was read back, another page had to be reclaimed; this share of
//! reclaim is attributed to the eviction choice. Time without evidence in a counter stays unexplained, so the shares
//! always add up to the difference.

use std::collections::BTreeMap;

use pagetide_probe::meaning::{Part, RowId};

use super::account::{
    Account, CONTIGUITY, CounterGrowth, CpuHolder, PassAccount, SCANNED_DIRECT, STOLEN_DIRECT,
    SideView, mean_of,
};
use super::decompose::{chain, fold, kinds};
use super::mechanism::Mechanism;

/// Amounts of free memory at the start that differ by more than this share are a separate cause. The same share decides
/// whether numbers of huge pages differ.
const MEMORY_SHARE: f64 = 0.01;
/// Mean times of a read request count as equal if they differ by at most this share of the longer one.
const ALIKE_SHARE: f64 = 0.25;
/// If request times differ by at most this share of the longer one, they are no evidence of a longer queue or a slower
/// device.
const QUEUE_SHARE: f64 = 0.02;
/// If there are fewer sleeps than this per major fault, major faults usually do not sleep.
const SLEEPS_PER_FAULT: f64 = 0.5;
/// Key of the kernel in the map of settings.
pub(super) const KERNEL: &str = "kernel";
/// Assumed length of a timer tick, in nanoseconds: that of kernels with `CONFIG_HZ=250`. The kernel uses ticks to
/// separate user from kernel time.
const TICK_NANOS: f64 = 4e6;

/// Attribution of a difference in time, B minus A, to mechanisms. All times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Time that each mechanism adds, in nanoseconds; negative if it saves time.
    pub by: BTreeMap<Mechanism, f64>,
    /// Remaining difference without evidence, in nanoseconds.
    pub unexplained: f64,
}

impl Effects {
    fn add(&mut self, mechanism: Mechanism, time: f64) {
        *self.by.entry(mechanism).or_default() += time;
    }

    /// Returns the mean of several attributions.
    pub fn mean(all: &[Self]) -> Self {
        Self {
            by: mean_of(all.iter().map(|effects| &effects.by)),
            unexplained: all.iter().map(|effects| effects.unexplained).sum::<f64>()
                / all.len().max(1) as f64,
        }
    }

    /// Returns the sum of the contributions of all mechanisms and the unexplained rest, in nanoseconds.
    pub fn total(&self) -> f64 {
        self.by.values().sum::<f64>() + self.unexplained
    }
}

/// Measurements of two sides, each with an observed pass.
struct Sides<'a> {
    accounts: [SideView<'a>; 2],
    observed: [&'a PassAccount; 2],
    /// Times of each side by part.
    times: [Times; 2],
}

/// Attributes the difference of two observed passes to mechanisms; `None` if a side has no observed pass.
pub fn of_traces(a: SideView<'_>, b: SideView<'_>) -> Option<Effects> {
    let observed = [a.observed?, b.observed?];
    let sides = Sides {
        accounts: [a, b],
        observed,
        times: observed.map(Times::of),
    };
    let mut effects = Effects::default();
    sides.waits(&mut effects);
    sides.reclaim(&mut effects);
    sides.compaction(&mut effects);
    effects.add(Mechanism::DirtyLimits, sides.difference(Part::DirtyLimit));
    sides.queue(&mut effects);
    sides.processor(&mut effects);
    effects.unexplained += sides.difference(Part::Unexplained);
    Some(effects)
}

/// Attributes a difference in waiting time to mechanisms, without observed passes. Waiting is elapsed time minus
/// processor time. A difference in processor time is unexplained; so is the whole difference if processor time was not
/// measured on both sides.
pub fn of_counters(a: &Account, b: &Account) -> Effects {
    let [t_a, t_b] = [a, b].map(waiting);
    let mut effects = Effects::default();
    if let (Some(t_a), Some(t_b)) = (t_a, t_b) {
        chain_of_waits(
            [a.seen(None), b.seen(None)],
            [&a.growth, &b.growth],
            [t_a, t_b],
            [None; 2],
            &mut effects,
        );
    }
    let whole = b.elapsed - a.elapsed;
    effects.unexplained += whole - effects.total();
    effects
}

/// Returns the elapsed time minus processor time, in nanoseconds; `None` if the scenario does not measure processor
/// time.
fn waiting(account: &Account) -> Option<f64> {
    let user = account.levels.get("user")?;
    let system = account.levels.get("system")?;
    Some((account.elapsed - user - system).max(0.0))
}

/// Attributes a difference in waiting for I/O to its factors: pages that were read back × waits per page × time per
/// wait. `requests` is the mean time of a read request on each side, in nanoseconds; `None` if no request was traced.
fn chain_of_waits(
    accounts: [SideView<'_>; 2],
    growth: [&super::account::Amounts; 2],
    times: [f64; 2],
    requests: [Option<f64>; 2],
    effects: &mut Effects,
) {
    let counted = growth.map(CounterGrowth);
    if accounts.iter().all(|side| sleeps_are_others(side)) {
        effects.add(unnamed(accounts), times[1] - times[0]);
        return;
    }
    if counted.iter().any(|side| !side.waits_known()) {
        // System calls that read files also wait, and no counter shows how often.
        waits_of_reads(accounts, counted, times, requests, effects);
        return;
    }
    let levels = |side: usize| {
        let counted = counted[side];
        [counted.back(), counted.get("pgmajfault"), times[side]]
    };
    let ([pages, waits, cost], rest) = chain(levels(0), levels(1));
    let (waits, cost) = fold(waits, cost);
    effects.add(demand(accounts), pages);
    let same = |names: &[&str]| names.iter().all(|name| setting_is_same(accounts, name));
    let same_read_ahead = same(&["vm.page-cluster", "swap/vma_ra_enabled"]);
    let same_code = same(&[KERNEL, "lru_gen/enabled"]);
    let contiguity = |side: usize| accounts[side].levels.get(CONTIGUITY);
    let moved = match (contiguity(0), contiguity(1)) {
        (Some(a), Some(b)) => (a - b).abs() > 0.01,
        _ => false,
    };
    if same_read_ahead && moved {
        effects.add(Mechanism::SwapLayout, waits);
    } else if same_read_ahead && same_code && follows_memory(accounts, waits) {
        // The kernel reads further ahead if more of the previous read-ahead was used between two waits. With less
        // memory, more accesses have to wait, so each wait reads fewer pages.
        effects.add(Mechanism::SharedMemory, waits);
    } else {
        effects.add(Mechanism::ReadAhead, waits);
    }
    effects.add(slower_waits(accounts, requests, cost), cost);
    effects.unexplained += rest;
}

/// True if there were sleeps in the observed pass, but fewer than half as many as major faults, as on zram. The few
/// sleeps may then have other causes than faults.
fn sleeps_are_others(side: &SideView<'_>) -> bool {
    side.observed.is_some_and(|observed| {
        let faults = CounterGrowth(&observed.growth).get("pgmajfault");
        let slept = observed.slept(Part::IoWait);
        slept > 0.0 && slept < SLEEPS_PER_FAULT * faults
    })
}

/// Returns the mechanism for a change in the time per wait. If the swap devices differ, it is the device. On the same
/// device, the time of requests must change in the direction of `cost`: the cause is then the queue of zram or a
/// simulated SSD, or the latency of any other device. Otherwise it is [`unnamed`]. `requests` is the mean time of a
/// read request on each side, in nanoseconds.
fn slower_waits(accounts: [SideView<'_>; 2], requests: [Option<f64>; 2], cost: f64) -> Mechanism {
    let [a, b] = accounts.map(|seen| seen.account.settings.get("swap"));
    if a != b {
        return Mechanism::DeviceLatency;
    }
    // zram and the simulated SSD take the same time for every request outside their queue.
    let constant = a.is_some_and(|swap| swap.starts_with("zram") || swap.starts_with("ssd"));
    match requests {
        [Some(a), Some(b)] if (b - a) * cost > 0.0 && (b - a).abs() > QUEUE_SHARE * a.max(b) => {
            if constant {
                Mechanism::DeviceQueue
            } else {
                Mechanism::DeviceLatency
            }
        }
        _ => unnamed(accounts),
    }
}

/// Returns the mechanism for waits outside reclaim of which no counter shows the cause: `SeenWaits` if both sides have
/// stacks, otherwise `UnknownWaits`.
fn unnamed(accounts: [SideView<'_>; 2]) -> Mechanism {
    if knows_sites(accounts, Part::IoWait) {
        Mechanism::SeenWaits
    } else {
        Mechanism::UnknownWaits
    }
}

/// True if both sides have stacks that show where tasks slept in this part.
fn knows_sites(accounts: [SideView<'_>; 2], part: Part) -> bool {
    accounts
        .iter()
        .all(|side| side.observed.is_some_and(|seen| seen.knows_sites(part)))
}

/// Attributes waiting to mechanisms if system calls read most pages from files with large read-ahead, and faults read
/// few pages from swap one by one. The waits of these two kinds have different costs. The time of the device itself is
/// known only if requests were traced.
fn waits_of_reads(
    accounts: [SideView<'_>; 2],
    counted: [CounterGrowth<'_>; 2],
    times: [f64; 2],
    requests: [Option<f64>; 2],
    effects: &mut Effects,
) {
    let back = |side: usize| counted[side].back();
    let [Some(of_a), Some(of_b)] = requests else {
        let ([pages, cost], rest) = chain([back(0), times[0]], [back(1), times[1]]);
        effects.add(demand(accounts), pages);
        effects.add(slower_waits(accounts, requests, cost), cost);
        effects.unexplained += rest;
        return;
    };
    let kind = |side: usize| {
        let swapped = counted[side].swapped_back().min(back(side));
        [swapped, back(side) - swapped, times[side]]
    };
    if (of_a - of_b).abs() <= ALIKE_SHARE * of_a.max(of_b)
        && let Some(both) = kinds(kind(0), kind(1))
    {
        effects.add(demand(accounts), both.iter().sum());
        return;
    }
    let levels = |side: usize, request: f64| [back(side), back(side) * request, times[side]];
    let ([pages, request, waits], rest) = chain(levels(0, of_a), levels(1, of_b));
    effects.add(demand(accounts), pages);
    effects.add(slower_waits(accounts, requests, request), request);
    effects.add(Mechanism::ReadAhead, waits);
    effects.unexplained += rest;
}

/// Returns the mechanism for a change in the number of pages that were read back: free memory at the start if it
/// differs, otherwise the eviction choice.
pub(super) fn demand(accounts: [SideView<'_>; 2]) -> Mechanism {
    if memory_taken(accounts) == 0.0 {
        Mechanism::EvictionChoice
    } else {
        Mechanism::SharedMemory
    }
}

/// Returns the amount by which the other side had less free memory at the start than the baseline, in bytes; negative
/// if it had more, 0 if the amounts are about equal or unknown.
fn memory_taken(accounts: [SideView<'_>; 2]) -> f64 {
    match accounts.map(|seen| seen.account.levels.get("free-at-start").copied()) {
        [Some(a), Some(b)] if (a - b).abs() > MEMORY_SHARE * a.max(b) => a - b,
        _ => 0.0,
    }
}

/// True if the time grows with less free memory, or falls with more. `time` is the change of the time.
fn follows_memory(accounts: [SideView<'_>; 2], time: f64) -> bool {
    memory_taken(accounts) * time > 0.0
}

fn setting_is_same(accounts: [SideView<'_>; 2], name: &str) -> bool {
    accounts[0].settings.get(name) == accounts[1].settings.get(name)
}

impl Sides<'_> {
    fn difference(&self, part: Part) -> f64 {
        self.times[1].get(part) - self.times[0].get(part)
    }

    fn counted(&self, side: usize) -> CounterGrowth<'_> {
        CounterGrowth(&self.observed[side].growth)
    }

    fn waits(&self, effects: &mut Effects) {
        let times = [0, 1].map(|side| self.times[side].get(Part::IoWait));
        let growth = [0, 1].map(|side| &self.observed[side].growth);
        let requests = self.observed.map(|observed| observed.read);
        chain_of_waits(self.accounts, growth, times, requests, effects);
    }

    /// Returns the number of additional pages read back from a device, as a share (0 to 1) of the additional reclaimed
    /// pages. Memory for these pages had to be reclaimed.
    fn of_pages_back(&self) -> f64 {
        let [read, stolen] = [CounterGrowth::back, CounterGrowth::stolen]
            .map(|count| count(self.counted(1)) - count(self.counted(0)));
        if read * stolen <= 0.0 {
            0.0
        } else {
            (read / stolen).min(1.0)
        }
    }

    /// Attributes the effect of more or fewer reclaimed pages: the share due to pages that were read back to their
    /// mechanism, the rest to `other`.
    fn add_pages(&self, effects: &mut Effects, other: Mechanism, time: f64) {
        let back = time * self.of_pages_back();
        effects.add(demand(self.accounts), back);
        effects.add(other, time - back);
    }

    fn reclaim(&self, effects: &mut Effects) {
        let levels = |side: usize| {
            let counted = self.counted(side);
            let direct = counted.sum(&STOLEN_DIRECT);
            let scanned = counted.sum(&SCANNED_DIRECT);
            let time = self.times[side].get(Part::Reclaim);
            [counted.stolen(), direct, scanned, time]
        };
        let (a, b) = (levels(0), levels(1));
        if setting_is_same(self.accounts, "lru_gen/enabled") {
            let ([pages, share, scan, cost], rest) = chain(a, b);
            let (scan, cost) = fold(scan, cost);
            self.add_pages(effects, Mechanism::DirectReclaim, pages);
            effects.add(Mechanism::DirectReclaim, share + cost);
            effects.add(Mechanism::ScanEfficiency, scan);
            effects.unexplained += rest;
        } else {
            // Numbers of scanned pages cannot be compared between the classic LRU lists and the multi-generational LRU.
            let without = |levels: [f64; 4]| [levels[0], levels[1], levels[3]];
            let ([pages, share, cost], rest) = chain(without(a), without(b));
            self.add_pages(effects, Mechanism::DirectReclaim, pages);
            effects.add(Mechanism::DirectReclaim, share);
            effects.add(Mechanism::ScanEfficiency, cost);
            effects.unexplained += rest;
        }
        let levels = |side: usize| {
            [
                self.counted(side).stolen(),
                self.times[side].get(Part::ReclaimWait),
            ]
        };
        let ([pages, cost], rest) = chain(levels(0), levels(1));
        // The part of this wait that the kernel reports as throttling is attributed to throttling. Only stacks show the
        // cause of the rest.
        let unthrottled = if knows_sites(self.accounts, Part::ReclaimWait) {
            Mechanism::SeenReclaimWaits
        } else {
            Mechanism::ReclaimWaits
        };
        let throttled = self
            .observed
            .map(|side| side.rows.get(&RowId::TimeThrottled));
        let all = pages + cost + rest;
        let seen = match throttled {
            [Some(a), Some(b)] if (b - a) * all > 0.0 => ((b - a) / all).min(1.0),
            _ => 0.0,
        };
        for (mechanism, share) in [(Mechanism::WriteBack, seen), (unthrottled, 1.0 - seen)] {
            if share > 0.0 {
                self.add_pages(effects, mechanism, share * pages);
                effects.add(mechanism, share * (cost + rest));
            }
        }
    }

    fn compaction(&self, effects: &mut Effects) {
        for part in [Part::Compaction, Part::CompactionWait] {
            effects.add(Mechanism::Compaction, self.difference(part));
        }
        effects.add(
            Mechanism::Compaction,
            self.times[1].kcompactd - self.times[0].kcompactd,
        );
    }

    /// Attributes time waiting for a CPU on which kswapd or another task outside the workload ran, except kcompactd.
    fn queue(&self, effects: &mut Effects) {
        let levels = |side: usize| {
            let counted = self.counted(side);
            let time = self.times[side].get(Part::RunQueue);
            [counted.stolen(), counted.get("pgsteal_kswapd"), time]
        };
        let ([pages, share, cost], rest) = chain(levels(0), levels(1));
        self.add_pages(effects, Mechanism::BackgroundReclaim, pages);
        effects.add(Mechanism::BackgroundReclaim, share + cost + rest);
    }

    /// Attributes time in user mode, and in the kernel outside reclaim and compaction.
    fn processor(&self, effects: &mut Effects) {
        let [user_a, user_b] = [0, 1].map(|side| self.times[side].get(Part::Compute));
        let [mut kernel_a, mut kernel_b] = [0, 1].map(|side| self.times[side].get(Part::Fault));
        let user = user_b - user_a;
        // The kernel samples the mode of a task at ticks. A difference in user time below three standard deviations of
        // such counts is added to that of kernel time.
        let variance = |observed: &PassAccount| {
            let (user, kernel) = (observed.time(Part::Compute), observed.time(Part::Fault));
            let all = user + kernel;
            if all > 0.0 {
                TICK_NANOS * user / all * kernel
            } else {
                0.0
            }
        };
        let noise = 3.0 * self.observed.map(variance).iter().sum::<f64>().sqrt();
        if user.abs() > noise {
            effects.add(Mechanism::Compute, user);
        } else {
            kernel_a += user_a;
            kernel_b += user_b;
        }
        self.faults(kernel_a, kernel_b, effects);
    }

    fn faults(&self, time_a: f64, time_b: f64, effects: &mut Effects) {
        let [a, b] = [0, 1].map(|side| self.counted(side));
        let huge = [a, b].map(|counted| counted.get("thp_fault_alloc"));
        // A fault that gets a huge page clears 512 pages. Free blocks decide whether a fault gets a huge page.
        let levels = |counted: CounterGrowth<'_>, huge: f64, time: f64| {
            [huge, (counted.get("pgfault") - huge).max(0.0), time]
        };
        let differ = (huge[0] - huge[1]).abs() > MEMORY_SHARE * huge[0].max(huge[1]);
        // Counters cover the whole trial. But the time of attempts to get blocks covers only those faults that got a
        // block.
        if differ && self.observed.iter().all(|side| side.attempts) {
            let ([blocks, cost], rest) = chain([huge[0], time_a], [huge[1], time_b]);
            effects.add(Mechanism::Compaction, blocks);
            effects.add(Mechanism::Faults, cost);
            effects.unexplained += rest;
            return;
        }
        if differ
            && let Some([blocks, faults]) =
                kinds(levels(a, huge[0], time_a), levels(b, huge[1], time_b))
        {
            effects.add(Mechanism::Compaction, blocks);
            effects.add(Mechanism::Faults, faults);
            return;
        }
        let of_kind = |counted: CounterGrowth<'_>, time: f64| {
            [counted.faults_back(), counted.faults_other(), time]
        };
        if let Some([back, other]) = kinds(of_kind(a, time_a), of_kind(b, time_b)) {
            effects.add(demand(self.accounts), back);
            effects.add(Mechanism::Faults, other);
            return;
        }
        let ([count, cost], rest) = chain([a.get("pgfault"), time_a], [b.get("pgfault"), time_b]);
        let more = b.get("pgfault") - a.get("pgfault");
        let back = b.faults_back() - a.faults_back();
        let share = if back * more > 0.0 {
            (back / more).min(1.0)
        } else {
            0.0
        };
        effects.add(demand(self.accounts), count * share);
        effects.add(Mechanism::Faults, count * (1.0 - share) + cost);
        effects.unexplained += rest;
    }
}

/// Times of one side. Time waiting for a CPU on which kcompactd ran is kept apart.
struct Times {
    /// Time by part, in nanoseconds, without time waiting for a CPU on which kcompactd ran.
    parts: BTreeMap<Part, f64>,
    /// Time waiting for a CPU on which kcompactd ran, in nanoseconds.
    kcompactd: f64,
}

impl Times {
    fn of(observed: &PassAccount) -> Self {
        let mut parts = observed.times.clone();
        let kcompactd = observed.queue.get(&CpuHolder::Kcompactd).copied();
        let kcompactd = kcompactd.unwrap_or(0.0);
        if let Some(time) = parts.get_mut(&Part::RunQueue) {
            *time -= kcompactd;
        }
        Self { parts, kcompactd }
    }

    fn get(&self, part: Part) -> f64 {
        self.parts.get(&part).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::Amounts;
    use super::*;

    /// Returns the mechanisms found if reading 8,000 pages takes more waits in B than in A. `free` is the free memory
    /// at the start of each side.
    fn of_more_waits(free: [f64; 2], change: impl Fn(&mut Account)) -> Vec<Mechanism> {
        let side = |free: f64, waits: f64| Account {
            levels: [("free-at-start".to_owned(), free)].into(),
            settings: [
                (KERNEL.to_owned(), "6.12".to_owned()),
                ("vm.page-cluster".to_owned(), "3".to_owned()),
            ]
            .into(),
            growth: [
                ("pswpin", 8_000.0),
                ("pgmajfault", waits),
                ("swap_ra", 8_000.0 - waits),
                ("swap_ra_hit", 8_000.0 - waits),
            ]
            .map(|(name, count)| (name.to_owned(), count))
            .into_iter()
            .collect::<Amounts>(),
            ..Account::default()
        };
        let (a, mut b) = (side(free[0], 2_000.0), side(free[1], 2_400.0));
        change(&mut b);
        let mut effects = Effects::default();
        chain_of_waits(
            [a.seen(None), b.seen(None)],
            [&a.growth, &b.growth],
            [2_000.0 * 8e4, 2_400.0 * 8e4],
            [None; 2],
            &mut effects,
        );
        let mut named: Vec<Mechanism> = effects.by.keys().copied().collect();
        named.retain(|mechanism| effects.by[mechanism].abs() > 1.0);
        named
    }

    #[test]
    fn more_waits_are_attributed_to_less_memory_if_read_ahead_is_equal() {
        let less = [20e6, 16e6];
        let alike = |_: &mut Account| {};
        assert_eq!(of_more_waits(less, alike), [Mechanism::SharedMemory]);
        // If the other side has as much memory or more, memory does not cause the additional waits.
        assert_eq!(of_more_waits([20e6, 20e6], alike), [Mechanism::ReadAhead]);
        assert_eq!(of_more_waits([16e6, 20e6], alike), [Mechanism::ReadAhead]);
        // If kernels or settings differ too, memory may not be the cause.
        let others = [
            (KERNEL, "6.18"),
            ("vm.page-cluster", "2"),
            ("lru_gen/enabled", "7"),
        ];
        for (name, value) in others {
            let other = |side: &mut Account| {
                side.settings.insert(name.to_owned(), value.to_owned());
            };
            assert_eq!(of_more_waits(less, other), [Mechanism::ReadAhead], "{name}");
        }
    }
}
