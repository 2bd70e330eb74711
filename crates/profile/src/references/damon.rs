//! How well DAMON, the kernel's monitor of accesses, sees which pages are referenced.
//!
//! DAMON divides memory into regions and looks at one page of each region at a time. At the end of each interval, the
//! pages of programs in its regions with accesses are compared with the pages that were referenced in this interval.

use serde::Serialize;

use super::Region;
use super::paging::{Times, share};

/// DAMON's regions, compared with the references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Damon {
    /// Number of intervals that were compared.
    pub intervals: u64,
    /// Number of regions, summed over the intervals.
    pub regions: u64,
    /// Pages of programs in regions with accesses, summed over the intervals.
    pub claimed: u64,
    /// Pages that were referenced, summed over the intervals.
    pub referenced: u64,
    /// Pages that were both.
    pub both: u64,
    /// Median time from the first reference that DAMON had not seen yet to the end of the interval in which it saw
    /// accesses to the page's region, in nanoseconds.
    pub lag: u64,
}

impl Damon {
    /// Share of the pages in regions with accesses that were referenced; `None` if there were no such regions.
    pub fn precision(&self) -> Option<f64> {
        share(self.both, self.claimed)
    }

    /// Share of referenced pages that were in regions with accesses; `None` if no page was referenced.
    pub fn recall(&self) -> Option<f64> {
        share(self.both, self.referenced)
    }
}

/// What is known of a page.
#[derive(Clone, Copy)]
struct State {
    /// Interval in which the page was last referenced.
    interval: u32,
    /// Time of the first reference that DAMON has not seen.
    since: Option<u64>,
}

/// Follows references and regions in their order.
#[derive(Default)]
pub(super) struct Monitor {
    pages: Vec<State>,
    /// Pages that were referenced in this interval.
    touched: Vec<u32>,
    interval: u32,
    /// First page and number of pages in regions with accesses, with the address space before.
    claims: Vec<(u32, u64, u64)>,
    found: Damon,
    lags: Times,
}

impl Monitor {
    /// Records a reference to the page with this index at this time. New pages have the next index.
    pub fn refer(&mut self, index: usize, at: u64) {
        if index >= self.pages.len() {
            let new = State {
                interval: u32::MAX,
                since: None,
            };
            self.pages.resize(index + 1, new);
        }
        let page = &mut self.pages[index];
        page.since.get_or_insert(at);
        if page.interval != self.interval {
            page.interval = self.interval;
            self.touched.push(u32::try_from(index).unwrap_or(u32::MAX));
        }
    }

    /// Records pages in a region with accesses.
    pub fn region(&mut self, region: &Region) {
        self.claims.push((region.space, region.first, region.pages));
    }

    /// Records the end of an interval. `parts` returns address space and number of the page with an
    /// index. The first interval is left out, since DAMON did not watch for all of it.
    pub fn end(&mut self, count: u64, at: u64, parts: impl Fn(usize) -> (u32, u64)) {
        let mut claims = std::mem::take(&mut self.claims);
        claims.sort_unstable();
        let is_claimed = |own: u32, page: u64| {
            let after = claims.partition_point(|(space, first, _)| (*space, *first) <= (own, page));
            let before = after.checked_sub(1).map(|before| claims[before]);
            before.is_some_and(|(space, first, pages)| space == own && page - first < pages)
        };
        let mut found = Damon {
            intervals: 1,
            regions: count,
            claimed: claims.iter().map(|(_, _, pages)| pages).sum(),
            ..Damon::default()
        };
        let is_first = self.interval == 0;
        for index in std::mem::take(&mut self.touched) {
            let (own, page) = parts(index as usize);
            found.referenced += 1;
            let state = &mut self.pages[index as usize];
            if is_claimed(own, page) {
                found.both += 1;
                if let Some(since) = state.since.take().filter(|_| !is_first) {
                    self.lags.add(at.saturating_sub(since));
                }
            }
        }
        self.interval += 1;
        if !is_first {
            self.found.intervals += found.intervals;
            self.found.regions += found.regions;
            self.found.claimed += found.claimed;
            self.found.referenced += found.referenced;
            self.found.both += found.both;
        }
    }

    /// The result; `None` if no interval was compared.
    pub fn result(self) -> Option<Damon> {
        let lag = self.lags.median();
        (self.found.intervals > 0).then_some(Damon { lag, ..self.found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_compared_with_the_pages_that_were_referenced_in_their_interval() {
        let mut monitor = Monitor::default();
        // The page with index n is page n of space 1, those from 100 on belong to space 2.
        let parts = |index: usize| (1 + u32::from(index >= 100), index as u64);
        let claim = |monitor: &mut Monitor, first, pages| {
            monitor.region(&Region {
                space: 1,
                first,
                pages,
            });
        };
        monitor.refer(1, 5);
        monitor.end(9, 10, parts);
        // DAMON sees two of four pages in a region of eight.
        for index in [2, 3, 50, 100] {
            monitor.refer(index, 20);
        }
        claim(&mut monitor, 0, 8);
        monitor.end(9, 40, parts);
        // In the next interval, it finds the third, 40 after the first reference.
        monitor.refer(50, 45);
        claim(&mut monitor, 50, 2);
        monitor.end(11, 60, parts);
        let found = monitor.result().unwrap();
        assert_eq!((found.intervals, found.regions), (2, 20));
        assert_eq!((found.claimed, found.referenced, found.both), (10, 5, 3));
        assert_eq!((found.precision(), found.recall()), (Some(0.3), Some(0.6)));
        assert_eq!(found.lag, 20);
        assert_eq!(Monitor::default().result(), None);
    }
}
