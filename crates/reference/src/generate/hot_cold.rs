//! The pattern `hot-cold`: a moving hot set of pages.

use super::Generator;
use crate::number::{part_of, whole_u32, whole_u64};
use crate::rng::Rng;

/// Parameters of a moving hot set. The catalogue of patterns describes them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HotCold {
    /// Size of the hot set as a fraction of all pages, 0 to 1. At least one page is hot and at least one is cold.
    pub hot: f64,
    /// Fraction of the references that go to the hot set, 0 to 1.
    pub share: f64,
    /// Number of references between two moves of the hot set; 0 for no moves.
    pub move_every: u64,
    /// Distance of a move as a fraction of the size of the hot set, 0 to 1. A move is at least one page.
    pub by: f64,
}

/// Generator of a [`HotCold`].
///
/// A moving working set (Denning, "The working set model for program behavior", 1968), simplified to one window.
/// Policies differ in how fast they evict pages that are no longer hot.
#[derive(Debug, Clone)]
pub(crate) struct HotSet {
    pages: u32,
    hot: u32,
    /// A reference goes to the hot set if a random number of 53 bits is below this threshold.
    threshold: u64,
    start: u32,
    shift: u32,
    every: u64,
    until_move: u64,
    rng: Rng,
}

impl HotSet {
    pub(crate) fn new(parameters: &HotCold, pages: u32, seed: u64) -> Self {
        let hot = part_of(pages, parameters.hot);
        let shift = whole_u32(libm::round(f64::from(hot) * parameters.by)).max(1);
        let mut rng = Rng::stream(seed, "hot-cold");
        Self {
            pages,
            hot,
            threshold: threshold(parameters.share),
            start: rng.below_u32(pages),
            shift,
            every: parameters.move_every,
            until_move: parameters.move_every,
            rng,
        }
    }
}

/// Converts a fraction to the threshold for random numbers of 53 bits; exact for 0 and 1.
pub(super) fn threshold(share: f64) -> u64 {
    whole_u64(share * 9_007_199_254_740_992.0)
}

impl Generator for HotSet {
    #[inline]
    fn next_page(&mut self) -> u32 {
        if self.every > 0 {
            if self.until_move == 0 {
                self.start = wrap(self.start + self.shift, self.pages);
                self.until_move = self.every;
            }
            self.until_move -= 1;
        }
        let offset = if self.rng.next_u64() >> 11 < self.threshold {
            self.rng.below_u32(self.hot)
        } else {
            self.hot + self.rng.below_u32(self.pages - self.hot)
        };
        wrap(self.start + offset, self.pages)
    }
}

/// Returns `page` modulo `pages`, for a page below twice `pages`.
#[inline]
fn wrap(page: u32, pages: u32) -> u32 {
    if page >= pages { page - pages } else { page }
}
