//! SIEVE: a clock in which surviving pages keep their positions.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;

pub(super) static ABOUT: About = About {
    name: "sieve",
    summary: "A hand goes from old to new and evicts the first page not used since it last passed; survivors keep their place.",
    source: "Zhang, Yang, Yue, Vigfusson, Rashmi, \"SIEVE is simpler than LRU\", NSDI 2024. When the hand evicts the newest page, it starts at the oldest next time, as in libCacheSim; pages that come meanwhile are not looked at first.",
    parameters: &[],
    make: |setup| Box::new(Sieve::new(setup)),
};

struct Sieve {
    /// For each page: 0 if it is not in memory, 1 if it is, 2 if it was used since it arrived or the hand passed it.
    state: Vec<u8>,
    /// Pages in order of arrival: those that survived a pass of the hand, a gap, then those that the hand has not
    /// reached.
    pages: Vec<u32>,
    /// Number of pages that survived the current pass of the hand.
    passed: usize,
    /// Index of the next page to examine; equal to `end` if there is none.
    hand: usize,
    /// Index after the last page.
    end: usize,
    /// Number of free pages of memory.
    free: u32,
}

impl Sieve {
    fn new(setup: Setup<'_>) -> Self {
        // Twice the size of memory, so that the gap is closed at most once in `size` arrivals.
        let capacity = at(setup.size.min(setup.pages)) * 2 + flat::AHEAD;
        Self {
            state: flat::zeroed(at(setup.pages)),
            pages: flat::zeroed(capacity),
            passed: 0,
            hand: 0,
            end: 0,
            free: setup.size,
        }
    }

    /// Advances the hand until it evicts a page. Pages that survive are moved to the end of the passed pages.
    #[inline]
    fn evict(&mut self) {
        loop {
            let page = self.pages[self.hand];
            flat::prefetch(&self.state, self.pages[self.hand + flat::AHEAD / 2]);
            let state = &mut self.state[at(page)];
            *state -= 1;
            let is_evicted = *state == 0;
            self.pages[self.passed] = page;
            self.passed += usize::from(!is_evicted);
            self.hand += 1;
            if self.hand == self.end {
                // The hand restarts at the oldest page, so there is no gap.
                (self.hand, self.end, self.passed) = (0, self.passed, 0);
            }
            if is_evicted {
                return;
            }
        }
    }
}

impl Policy for Sieve {
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn touch(&mut self, page: u32) -> bool {
        if self.state[at(page)] > 0 {
            self.state[at(page)] = 2;
            return true;
        }
        self.state[at(page)] = 1;
        if self.free > 0 {
            self.free -= 1;
        } else {
            self.evict();
        }
        if self.end + flat::AHEAD > self.pages.len() {
            // Pages that the hand has not reached are moved up to the survivors.
            self.pages.copy_within(self.hand..self.end, self.passed);
            self.end -= self.hand - self.passed;
            self.hand = self.passed;
        }
        self.pages[self.end] = page;
        self.end += 1;
        false
    }

    fn held(&mut self, page: u32) -> bool {
        self.state[at(page)] > 0
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.state, page);
    }
}
