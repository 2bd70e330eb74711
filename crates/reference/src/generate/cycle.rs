//! The patterns `linear` and `loop`: one page after the other, cyclically.

use super::Generator;
use crate::rng::Rng;

/// Generator of `linear` (0, 1, … range−1, 0, …) and of `loop` (the same cycle from a random start page).
///
/// Over a range slightly larger than memory this is the worst case of LRU: every page is evicted just before it is
/// needed again, while keeping any fixed part of the range would give hits. Origin: VM Regress (2002) for `linear`; the
/// looping pattern of the studies of LIRS (Jiang and Zhang, 2002) and CLOCK-Pro (2005) for `loop`, where the caller
/// sets the range and the seed determines the phase.
#[derive(Debug, Clone)]
pub(crate) struct Cycle {
    next: u32,
    pages: u32,
}

impl Cycle {
    pub(crate) fn linear(pages: u32) -> Self {
        Self { next: 0, pages }
    }

    pub(crate) fn looping(pages: u32, seed: u64) -> Self {
        let next = Rng::stream(seed, "loop").below_u32(pages);
        Self { next, pages }
    }
}

impl Generator for Cycle {
    #[inline]
    fn next_page(&mut self) -> u32 {
        let page = self.next;
        self.next = if page + 1 == self.pages { 0 } else { page + 1 };
        page
    }
}
