//! CLOCK: second chance, with one ring of pages.

use super::{About, Parameter, Policy, Setup};
use crate::flat;
use crate::number::{at, whole};

pub(super) static ABOUT: About = About {
    name: "clock",
    summary: "A hand goes round and evicts the first page that was not used since it last passed.",
    source: "Corbató, \"A paging experiment with the Multics system\", 1969. A new page lies just behind the hand and counts as not used.",
    parameters: &[Parameter {
        name: "bits",
        help: "bits of the use counter; each pass of the hand takes one off",
        default: 1.0,
        least: 1.0,
        most: 7.0,
    }],
    make: |setup| Box::new(Clock::new(setup)),
};

struct Clock {
    /// For each page: 0 if it is not in memory, otherwise 1 plus the number of uses counted for second chances.
    state: Vec<u8>,
    ring: Vec<u32>,
    hand: usize,
    size: usize,
    most: u8,
}

impl Clock {
    fn new(setup: Setup<'_>) -> Self {
        Self {
            state: flat::zeroed(at(setup.pages)),
            ring: Vec::with_capacity(at(setup.size.min(setup.pages))),
            hand: 0,
            size: at(setup.size),
            most: u8::MAX >> (8 - whole(setup.value(0)).clamp(1, 7)),
        }
    }

    fn advance(&mut self) {
        self.hand += 1;
        if self.hand == self.size {
            self.hand = 0;
        }
    }
}

impl Policy for Clock {
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn touch(&mut self, page: u32) -> bool {
        let state = self.state[at(page)];
        if state > 0 {
            self.state[at(page)] = state + u8::from(state <= self.most);
            return true;
        }
        self.state[at(page)] = 1;
        if self.ring.len() < self.size {
            self.ring.push(page);
            return false;
        }
        loop {
            let candidate = self.ring[self.hand];
            let uses = &mut self.state[at(candidate)];
            *uses -= 1;
            if *uses == 0 {
                self.ring[self.hand] = page;
                self.advance();
                return false;
            }
            self.advance();
        }
    }

    fn held(&mut self, page: u32) -> bool {
        self.state[at(page)] > 0
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.state, page);
    }
}
