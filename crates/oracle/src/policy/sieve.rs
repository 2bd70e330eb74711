//! SIEVE: a clock whose survivors stay where they are.

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
    /// 0 for absent, 1 for present, 2 for used.
    state: Vec<u8>,
    /// In order of arrival: survivors that the hand has passed, a gap, and from the hand on what it has not looked at.
    pages: Vec<u32>,
    /// End of the survivors before the hand.
    passed: usize,
    /// The next page to look at; where it is the end, there is none.
    hand: usize,
    end: usize,
    /// Places in memory that are free yet.
    free: u32,
}

impl Sieve {
    fn new(setup: Setup<'_>) -> Self {
        // Beside the pages in memory as much again, so that the gap is closed once in as many arrivals at most.
        let room = at(setup.size.min(setup.pages)) * 2 + flat::AHEAD;
        Self {
            state: flat::zeroed(at(setup.pages)),
            pages: flat::zeroed(room),
            passed: 0,
            hand: 0,
            end: 0,
            free: setup.size,
        }
    }

    /// Moves the hand on until it has evicted a page. Survivors move to the others that it has passed.
    #[inline]
    fn evict(&mut self) {
        loop {
            let page = self.pages[self.hand];
            flat::soon(&self.state, self.pages[self.hand + flat::AHEAD / 2]);
            let state = &mut self.state[at(page)];
            *state -= 1;
            let is_evicted = *state == 0;
            self.pages[self.passed] = page;
            self.passed += usize::from(!is_evicted);
            self.hand += 1;
            if self.hand == self.end {
                // The hand goes back to the oldest, and there is no gap.
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
            // What the hand has not looked at moves to the survivors.
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
    fn soon(&self, page: u32) {
        flat::soon(&self.state, page);
    }
}
