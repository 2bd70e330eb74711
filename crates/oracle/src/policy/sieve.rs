//! SIEVE: a clock whose survivors stay where they are.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;
use crate::queue::{NOWHERE, Queue};

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
    pages: Queue,
    /// Slot of the next page to look at, or nowhere for the oldest.
    hand: u32,
    size: u32,
}

impl Sieve {
    fn new(setup: Setup<'_>) -> Self {
        Self {
            state: flat::zeroed(at(setup.pages)),
            pages: Queue::new(setup.size.min(setup.pages)),
            hand: NOWHERE,
            size: setup.size,
        }
    }

    fn evict(&mut self) {
        let mut slot = match self.hand {
            NOWHERE => self.pages.oldest().unwrap_or(0),
            slot => slot,
        };
        loop {
            let page = self.pages.page(slot);
            let next = self.pages.next(self.pages.after(slot));
            let state = &mut self.state[at(page)];
            *state -= 1;
            if *state == 0 {
                self.pages.remove(slot);
                self.hand = next.unwrap_or(NOWHERE);
                return;
            }
            slot = match next {
                Some(next) => next,
                None => self.pages.oldest().unwrap_or(slot),
            };
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
        if self.pages.len() == self.size {
            self.evict();
        }
        if self.pages.is_full() {
            self.hand = self.pages.close_holes(self.hand, |_, _| ());
        }
        self.pages.append(page);
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
