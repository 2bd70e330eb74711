//! OPT, the policy with the fewest faults possible with demand paging.
//!
//! Keeping a page from one use to the next is called an interval. Memory of C pages is C − 1 tokens, plus the page in
//! use: a token is room to keep one page. The largest number of hits is the largest number of intervals that the tokens
//! can serve. It is optimal to serve intervals in order of their ends, each with the token that became free last before
//! the interval began. This gives hits on the same references as evicting the page with the farthest next use. It needs
//! no future references, so a string can be streamed.

use super::{About, Policy, Setup};
use crate::flat;
use crate::number::at;
use crate::tokens::Tokens;

pub(super) static ABOUT: About = About {
    name: "opt",
    summary: "The least faults that are possible: evicts the page whose next use is farthest.",
    source: "Belady 1966 (MIN); Mattson et al. 1970 (OPT). As interval scheduling: Faigle, Nawijn, \"Note on scheduling intervals on-line\", Discrete Applied Mathematics 58, 1995",
    parameters: &[],
    make: |setup| Box::new(Opt::new(setup)),
};

struct Opt {
    /// For each page, the time of its last reference, from 1; 0 if it was never used.
    last: Vec<u32>,
    /// Times at which used tokens (room to keep one page) became free.
    tokens: Tokens,
    /// Number of tokens that were never used.
    unused: u32,
    now: u32,
}

impl Opt {
    fn new(setup: Setup<'_>) -> Self {
        Self {
            last: flat::zeroed(at(setup.pages)),
            tokens: Tokens::new(),
            unused: setup.size - 1,
            now: 0,
        }
    }
}

impl Policy for Opt {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        self.now += 1;
        let last = std::mem::replace(&mut self.last[at(page)], self.now);
        if last == 0 {
            return false;
        }
        // The page must be kept from just after its last reference. If that is the current time, it needs no token.
        let start = last + 1;
        if start == self.now {
            return true;
        }
        if let Some(free) = self.tokens.latest(start) {
            self.tokens.remove(free);
        } else if self.unused > 0 {
            self.unused -= 1;
        } else {
            return false;
        }
        self.tokens.insert(self.now);
        true
    }

    /// Returns true if the page can be kept until the end. Counts this as an interval that ends after all others, and
    /// uses up a token for it.
    fn held(&mut self, page: u32) -> bool {
        let start = self.last[at(page)] + 1;
        if start == 1 || start == self.now + 1 {
            return start > 1;
        }
        if let Some(free) = self.tokens.latest(start) {
            self.tokens.remove(free);
            return true;
        }
        let unused = self.unused > 0;
        self.unused -= u32::from(unused);
        unused
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        flat::prefetch(&self.last, page);
    }

    #[inline]
    fn prefetch_next(&self, page: u32) {
        self.tokens.prefetch(self.last[at(page)]);
    }
}
