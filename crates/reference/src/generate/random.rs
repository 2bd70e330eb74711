//! The pattern `random`: uniformly random pages after one linear pass.

use super::Generator;
use crate::rng::Rng;

/// Generator of `random`: one linear pass, so that every page is allocated, then uniformly random pages. Origin: VM
/// Regress (2002).
#[derive(Debug, Clone)]
pub(crate) struct Random {
    passed: u32,
    pages: u32,
    rng: Rng,
}

impl Random {
    pub(crate) fn new(pages: u32, seed: u64) -> Self {
        Self {
            passed: 0,
            pages,
            rng: Rng::stream(seed, "random"),
        }
    }
}

impl Generator for Random {
    #[inline]
    fn next_page(&mut self) -> u32 {
        if self.passed < self.pages {
            self.passed += 1;
            return self.passed - 1;
        }
        self.rng.below_u32(self.pages)
    }
}
