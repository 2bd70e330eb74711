//! How well the kernel chose: evictions, read-ahead and accessed bits, compared with the references.
//!
//! - An eviction is *wrong* if another page that was in memory then is used later than the evicted page, or never
//!   again. So the page was used again before another one that stayed in memory. Belady's optimal policy makes no such
//!   eviction: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal
//!   5(2), 1966. A page is in memory from its first reference on, except from an eviction to its next reference. Locked
//!   pages count, since references do not tell them apart.
//! - Read-ahead is *wasted* if the page is read again before it is used. A page that is not used until the end is
//!   counted apart: it might have been used later.
//! - A check of an accessed bit is compared with the truth: was the page referenced since the last check, or since the
//!   page was mapped? The lag is the time from the first such reference to the check.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{EventKind, Header, PageEvent};

/// Number of significant bits of a time in a median.
const BITS: u32 = 6;

/// Evictions of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Evictions {
    /// Number of evictions whose page is known and was referenced before.
    pub judged: u64,
    /// Number of other evictions.
    pub unknown: u64,
    /// Evictions after which the page was not referenced any more.
    pub not_again: u64,
    /// Evictions after which the page was referenced, after everything that stayed.
    pub right: u64,
    /// Wrong evictions.
    pub wrong: u64,
    /// Of the pages that stayed, the share that was used later or never: the mean over wrong evictions.
    pub later_share: f64,
    /// Median time from a wrong eviction to the next reference to its page, in nanoseconds.
    pub again_after: u64,
}

/// Page faults of pages with contents: in swap, in the swap cache or in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageFaults {
    /// Faults that read the contents from a device.
    pub read: u64,
    /// Faults that found the contents in memory.
    pub found: u64,
}

/// Reads of evicted pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadAhead {
    /// Pages that were read for a page fault, from swap or from a file.
    pub for_fault: u64,
    /// Pages that were read ahead from swap.
    pub ahead: u64,
    /// Pages read ahead that were used.
    pub used: u64,
    /// Pages read ahead that had to be read again before they were used.
    pub wasted: u64,
    /// Pages read ahead that were not used until the end.
    pub unused: u64,
}

/// Checks of accessed bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checks {
    /// The bit was set, and the page had been referenced.
    pub young_used: u64,
    /// The bit was set, but the page had not been referenced.
    pub young_unused: u64,
    /// The bit was not set, but the page had been referenced.
    pub old_used: u64,
    /// The bit was not set, and the page had not been referenced.
    pub old_unused: u64,
    /// Median time from the first reference since the last check to the check that found it, in nanoseconds.
    pub lag: u64,
}

impl Checks {
    /// Share of the checks with the bit set whose page had been referenced; `None` if no bit was set.
    pub fn precision(&self) -> Option<f64> {
        share(self.young_used, self.young_used + self.young_unused)
    }

    /// Share of the checks of referenced pages with the bit set; `None` if no checked page had been referenced.
    pub fn recall(&self) -> Option<f64> {
        share(self.young_used, self.young_used + self.old_used)
    }
}

pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A page that was evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageRow {
    /// Number of the address space.
    pub space: u32,
    /// Number of the page.
    pub page: u64,
    /// Number of evictions.
    pub evicted: u32,
    /// Number of wrong evictions.
    pub wrong: u32,
    /// Number of times the page was read ahead.
    pub read_ahead: u32,
    /// Number of times the page was read ahead and then read again before it was used.
    pub wasted: u32,
}

/// What the kernel did with the pages that a trial references.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Paging {
    /// Evictions; `None` if they were not recorded.
    pub evictions: Option<Evictions>,
    /// Page faults; `None` if they were not recorded.
    pub faults: Option<PageFaults>,
    /// Reads of evicted pages; `None` if they were not recorded.
    pub read_ahead: Option<ReadAhead>,
    /// Checks of accessed bits; `None` if they were not recorded.
    pub checks: Option<Checks>,
    /// Pages that were evicted: those with the most wrong evictions and wasted reads first.
    pub pages: Vec<PageRow>,
}

/// Numbers at places from 0 on, with sums over all places up to a given one. Source: P. M. Fenwick, "A new data
/// structure for cumulative frequency tables", Software: Practice and Experience 24(3), 1994.
#[derive(Default)]
struct Sums {
    numbers: Vec<i64>,
    tree: Vec<i64>,
    total: i64,
}

impl Sums {
    fn add(&mut self, place: u32, change: i64) {
        let place = place as usize;
        if place >= self.numbers.len() {
            let size = (place + 1).next_power_of_two().max(1024);
            self.numbers.resize(size, 0);
            self.tree = vec![0; size + 1];
            for at in 1..=size {
                self.tree[at] += self.numbers[at - 1];
                let next = at + (at & at.wrapping_neg());
                if next <= size {
                    self.tree[next] += self.tree[at];
                }
            }
        }
        self.total += change;
        self.numbers[place] += change;
        let mut at = place + 1;
        while at < self.tree.len() {
            self.tree[at] += change;
            at += at & at.wrapping_neg();
        }
    }

    /// Sum of the numbers at all places up to this one.
    fn up_to(&self, place: u32) -> i64 {
        let mut at = (place as usize + 1).min(self.numbers.len());
        let mut sum = 0;
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    /// Sum of the numbers at all places beyond this one.
    fn beyond(&self, place: u32) -> i64 {
        self.total - self.up_to(place)
    }
}

/// Numbers whose median is wanted, rounded down to [`BITS`] significant bits.
#[derive(Default)]
pub(super) struct Times(BTreeMap<u64, u64>);

impl Times {
    pub fn add(&mut self, time: u64) {
        let cut = (64 - time.leading_zeros()).saturating_sub(BITS);
        *self.0.entry(time >> cut << cut).or_default() += 1;
    }

    pub fn median(&self) -> u64 {
        let half = self.0.values().sum::<u64>().div_ceil(2);
        let mut seen = 0;
        let found = self.0.iter().find(|(_, count)| {
            seen += **count;
            seen >= half
        });
        found.map_or(0, |(time, _)| *time)
    }
}

/// What is known of a page.
#[derive(Clone, Copy, Default)]
struct State {
    /// Number of evictions of all pages before the last reference to the page.
    epoch: u32,
    /// Number of the eviction after which the page was not referenced yet, and its time.
    out: Option<(u32, u64)>,
    /// True if the page was read from swap and not used since.
    is_read: bool,
    /// Time of the first reference since the last check.
    used: Option<u64>,
    evicted: u32,
    wrong: u32,
    read_ahead: u32,
    wasted: u32,
}

/// Follows references and events in their order.
#[derive(Default)]
pub(super) struct Pager {
    pages: Vec<State>,
    /// For each eviction the number of pages that stayed.
    stayed: Vec<u32>,
    /// Number of pages in memory.
    resident: u32,
    /// Pages in memory by the epoch of their last reference.
    by_epoch: Sums,
    /// Evicted pages by the number of their eviction, and by the epoch of their last reference.
    out_by_number: Sums,
    out_by_epoch: Sums,
    evictions: Evictions,
    shares: f64,
    again: Times,
    faults: PageFaults,
    reads: ReadAhead,
    checks: Checks,
    lags: Times,
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Pager {
    /// Number of evictions up to now.
    fn now(&self) -> u32 {
        small(self.stayed.len())
    }

    /// Records a reference to the page with this index at this time. New pages have the next index.
    pub fn refer(&mut self, index: usize, at: u64) {
        let now = self.now();
        if index >= self.pages.len() {
            self.pages.resize(index + 1, State::default());
            self.pages[index].epoch = now;
            self.by_epoch.add(now, 1);
            self.resident += 1;
        }
        let page = &mut self.pages[index];
        page.used.get_or_insert(at);
        if let Some((number, evicted_at)) = page.out.take() {
            self.out_by_number.add(number, -1);
            self.out_by_epoch.add(page.epoch, -1);
            // Pages that were in memory at the eviction and were not referenced since: those that are still in memory,
            // and those that were evicted later.
            let later = self.by_epoch.up_to(number) + self.out_by_number.beyond(number)
                - self.out_by_epoch.beyond(number);
            let stayed = self.stayed[number as usize];
            if later > 0 {
                page.wrong += 1;
                self.evictions.wrong += 1;
                self.shares += later as f64 / f64::from(stayed.max(1));
                self.again.add(at.saturating_sub(evicted_at));
            } else {
                self.evictions.right += 1;
            }
            if std::mem::take(&mut page.is_read) {
                page.read_ahead += 1;
                self.reads.ahead += 1;
                self.reads.used += 1;
            }
            page.epoch = now;
            self.by_epoch.add(now, 1);
            self.resident += 1;
        } else if page.epoch != now {
            self.by_epoch.add(page.epoch, -1);
            self.by_epoch.add(now, 1);
            page.epoch = now;
        }
    }

    /// Records an event of the page with this index; `None` if the page was never referenced.
    pub fn event(&mut self, event: &PageEvent, index: Option<usize>) {
        let now = self.now();
        let state = index.and_then(|index| self.pages.get_mut(index));
        match event.kind {
            EventKind::Evicted => match state {
                Some(page) if page.out.is_none() => {
                    page.out = Some((now, event.at));
                    page.evicted += 1;
                    page.used = None;
                    self.by_epoch.add(page.epoch, -1);
                    self.out_by_number.add(now, 1);
                    self.out_by_epoch.add(page.epoch, 1);
                    self.resident -= 1;
                    self.stayed.push(self.resident);
                    self.evictions.judged += 1;
                }
                // A page that the kernel mapped and evicted without any reference is evicted once.
                Some(_) => {}
                None => self.evictions.unknown += 1,
            },
            EventKind::FaultFound => self.faults.found += 1,
            EventKind::FaultRead => {
                self.faults.read += 1;
                if let Some(page) = state.filter(|page| page.out.is_some()) {
                    page.is_read = false;
                    self.reads.for_fault += 1;
                }
            }
            EventKind::SwappedIn => {
                if let Some(page) = state.filter(|page| page.out.is_some()) {
                    if page.is_read {
                        page.read_ahead += 1;
                        page.wasted += 1;
                        self.reads.ahead += 1;
                        self.reads.wasted += 1;
                    }
                    page.is_read = true;
                }
            }
            EventKind::Old | EventKind::Young => {
                let Some(page) = state.filter(|page| page.out.is_none()) else {
                    return;
                };
                let is_young = event.kind == EventKind::Young;
                let used = page.used.take();
                let checks = &mut self.checks;
                let count = match (is_young, used.is_some()) {
                    (true, true) => &mut checks.young_used,
                    (true, false) => &mut checks.young_unused,
                    (false, true) => &mut checks.old_used,
                    (false, false) => &mut checks.old_unused,
                };
                *count += 1;
                if let Some(used) = used.filter(|_| is_young) {
                    self.lags.add(event.at.saturating_sub(used));
                }
            }
        }
    }

    /// The result. `parts` returns address space and number of the page with an index.
    pub fn paging(mut self, header: &Header, parts: impl Fn(usize) -> (u32, u64)) -> Paging {
        let mut pages = Vec::new();
        for (index, page) in self.pages.iter_mut().enumerate() {
            self.evictions.not_again += u64::from(page.out.is_some());
            if page.out.is_some() && page.is_read {
                page.read_ahead += 1;
                self.reads.ahead += 1;
                self.reads.unused += 1;
            }
            if page.evicted > 0 {
                let (space, number) = parts(index);
                pages.push(PageRow {
                    space,
                    page: number,
                    evicted: page.evicted,
                    wrong: page.wrong,
                    read_ahead: page.read_ahead,
                    wasted: page.wasted,
                });
            }
        }
        pages.sort_by_key(|row| std::cmp::Reverse((row.wrong + row.wasted, row.evicted)));
        let evictions = Evictions {
            unknown: self
                .evictions
                .unknown
                .saturating_add(header.unknown_evictions),
            later_share: share(1, self.evictions.wrong).map_or(0.0, |each| self.shares * each),
            again_after: self.again.median(),
            ..self.evictions
        };
        let checks = Checks {
            lag: self.lags.median(),
            ..self.checks
        };
        Paging {
            evictions: header.tells(EventKind::Evicted).then_some(evictions),
            faults: header.tells(EventKind::FaultRead).then_some(self.faults),
            read_ahead: header.tells(EventKind::SwappedIn).then_some(self.reads),
            checks: header.tells(EventKind::Old).then_some(checks),
            pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reference to a page (`Ok`), or an event of it.
    type Step = Result<usize, (EventKind, usize)>;

    const ALL: Header = Header {
        told: 63,
        instructions: 0,
        until: 0,
        recorded: 0,
        counts: [0; 5],
        kernel_own: 0,
        workload: 0,
        bytes: 0,
        unknown_evictions: 0,
    };

    fn paging(steps: &[Step]) -> Paging {
        let mut pager = Pager::default();
        for (at, step) in (0..).zip(steps) {
            match step {
                Ok(page) => pager.refer(*page, at * 100),
                Err((kind, page)) => {
                    let event = PageEvent {
                        kind: *kind,
                        space: 0,
                        page: *page as u64,
                        at: at * 100,
                    };
                    pager.event(&event, (*page < pager.pages.len()).then_some(*page));
                }
            }
        }
        pager.paging(&ALL, |index| (0, index as u64))
    }

    /// The definition, by lists: for each eviction, whether it is wrong and how many pages that stayed are used later.
    fn by_definition(steps: &[Step]) -> Vec<Option<(u64, u64)>> {
        let next = |from: usize, page: usize| {
            steps[from..]
                .iter()
                .position(|step| *step == Ok(page))
                .map_or(usize::MAX, |at| from + at)
        };
        let mut memory: Vec<usize> = Vec::new();
        let mut all = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            match step {
                Ok(page) if !memory.contains(page) => memory.push(*page),
                Err((EventKind::Evicted, page)) if memory.contains(page) => {
                    memory.retain(|other| other != page);
                    let again = next(at, *page);
                    let later = memory.iter().filter(|other| next(at, **other) > again);
                    let later = later.count() as u64;
                    all.push((again < usize::MAX).then_some((later, memory.len() as u64)));
                }
                _ => {}
            }
        }
        all
    }

    /// Numbers below `most`, from a linear congruential generator. Source: Knuth, MMIX.
    fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
        move |most| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % most
        }
    }

    #[test]
    fn wrong_evictions_are_those_of_the_definition() {
        for seed in 0..60 {
            let mut below = numbers(seed);
            let mut steps: Vec<Step> = Vec::new();
            let mut used = 0;
            for _ in 0..400 {
                let page = below(used.min(11) + 1);
                if below(4) == 0 {
                    steps.push(Err((EventKind::Evicted, page.min(used))));
                } else {
                    // New pages come in the order of their numbers, as indices do.
                    steps.push(Ok(page));
                    used = used.max(page + 1);
                }
            }
            let wanted = by_definition(&steps);
            let found = paging(&steps).evictions.unwrap();
            let again: Vec<(u64, u64)> = wanted.iter().flatten().copied().collect();
            let wrong: Vec<f64> = again
                .iter()
                .filter(|(later, _)| *later > 0)
                .map(|(later, of)| *later as f64 / *of as f64)
                .collect();
            assert_eq!(found.judged, wanted.len() as u64, "seed {seed}");
            assert_eq!(found.not_again, (wanted.len() - again.len()) as u64);
            assert_eq!(found.wrong, wrong.len() as u64, "seed {seed}");
            assert_eq!(found.right, (again.len() - wrong.len()) as u64);
            let mean = wrong.iter().sum::<f64>() / wrong.len().max(1) as f64;
            assert!((found.later_share - mean).abs() < 1e-9, "seed {seed}");
        }
    }

    #[test]
    fn read_ahead_is_used_wasted_or_left() {
        use EventKind::{Evicted, FaultFound, FaultRead, SwappedIn};
        let evicted = |page| Err((Evicted, page));
        let found = paging(&[
            Ok(0),
            Ok(1),
            Ok(2),
            evicted(0),
            evicted(1),
            evicted(2),
            // A fault of page 0 reads 1 and 2 too.
            Err((SwappedIn, 0)),
            Err((SwappedIn, 1)),
            Err((SwappedIn, 2)),
            Err((FaultRead, 0)),
            Ok(0),
            // Page 1 is used; 2 is read again before it is used, and then not used.
            Err((FaultFound, 1)),
            Ok(1),
            Err((SwappedIn, 2)),
            // Events of pages that were never referenced, or that are in memory, say nothing.
            Err((SwappedIn, 77)),
            Err((SwappedIn, 0)),
            Err((FaultRead, 0)),
        ]);
        let reads = found.read_ahead.unwrap();
        let all = [
            reads.for_fault,
            reads.ahead,
            reads.used,
            reads.wasted,
            reads.unused,
        ];
        assert_eq!(all, [1, 3, 1, 1, 1]);
        assert_eq!(found.faults.unwrap(), PageFaults { read: 2, found: 1 });
        let row = found.pages.iter().find(|row| row.page == 2).unwrap();
        assert_eq!((row.evicted, row.read_ahead, row.wasted), (1, 2, 1));
    }

    #[test]
    fn accessed_bits_are_compared_with_references_since_the_last_check() {
        use EventKind::{Evicted, Old, Young};
        let found = paging(&[
            Ok(0),
            Ok(1),
            Err((Young, 0)),
            Err((Old, 1)),
            Err((Young, 1)),
            Err((Old, 0)),
            Ok(0),
            Ok(0),
            Err((Young, 0)),
            Err((Evicted, 1)),
            // The entry of an evicted page has no accessed bit.
            Err((Young, 1)),
            Err((Old, 99)),
        ]);
        let checks = found.checks.unwrap();
        let all = [
            checks.young_used,
            checks.young_unused,
            checks.old_used,
            checks.old_unused,
        ];
        assert_eq!(all, [2, 1, 1, 1]);
        assert_eq!(checks.lag, 200);
        assert_eq!(
            (checks.precision(), checks.recall()),
            (Some(2.0 / 3.0), Some(2.0 / 3.0))
        );
        assert_eq!(Checks::default().precision(), None);
    }

    #[test]
    fn what_a_kernel_does_not_tell_is_none_and_what_did_not_happen_is_zero() {
        let silent = Pager::default().paging(&Header::default(), |_| (0, 0));
        assert_eq!(silent, Paging::default());
        let quiet = paging(&[Ok(0)]);
        assert_eq!(quiet.evictions, Some(Evictions::default()));
        assert!(quiet.pages.is_empty());
    }
}
