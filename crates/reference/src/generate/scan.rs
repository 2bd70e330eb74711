//! The pattern `scan-with-hot-core`: a linear scan interleaved with a hot core.

use super::Generator;
use super::cycle::Cycle;
use super::hot_cold::threshold;
use crate::number::part_of;
use crate::rng::Rng;

/// Parameters of a scan combined with a hot core. The catalogue of patterns describes them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScanWithHotCore {
    /// Size of the core as a fraction of all pages, 0 to 1. At least one page is in the core and at least one is
    /// outside.
    pub core: f64,
    /// Fraction of the references that go to the core, 0 to 1.
    pub share: f64,
}

/// Generator of a [`ScanWithHotCore`].
///
/// A test of scan resistance: a policy that uses only recency gives memory of the core to pages that are used once per
/// round. Origin: O'Neil, O'Neil and Weikum (LRU-K, 1993), Johnson and Shasha (2Q, 1994), Megiddo and Modha (ARC,
/// 2003).
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    core: u32,
    threshold: u64,
    rest: Cycle,
    rng: Rng,
}

impl Scan {
    pub(crate) fn new(parameters: &ScanWithHotCore, pages: u32, seed: u64) -> Self {
        let core = part_of(pages, parameters.core);
        Self {
            core,
            threshold: threshold(parameters.share),
            rest: Cycle::looping(pages - core, seed),
            rng: Rng::stream(seed, "scan-with-hot-core"),
        }
    }
}

impl Generator for Scan {
    #[inline]
    fn next_page(&mut self) -> u32 {
        if self.rng.next_u64() >> 11 < self.threshold {
            self.rng.below_u32(self.core)
        } else {
            self.core + self.rest.next_page()
        }
    }
}
