//! The pattern `zipf05`: VM Regress's approximation of Zipf's law with exponent one half.

use super::Generator;
use crate::number::whole_u32;
use crate::rng::Rng;

/// Generator of `zipf05`. It draws k = ⌊range·r²+0.5⌋ with r uniform in [0, 1), again if k is 0 or above range, and
/// returns page k−1.
///
/// The density of r² is proportional to the inverse square root, hence the name. The formula counts pages from 1,
/// because it allows `range` but not 0. Origin: VM Regress (2002).
#[derive(Debug, Clone)]
pub(crate) struct Zipf05 {
    pages: u32,
    rng: Rng,
}

impl Zipf05 {
    pub(crate) fn new(pages: u32, seed: u64) -> Self {
        Self {
            pages,
            rng: Rng::stream(seed, "zipf05"),
        }
    }
}

impl Generator for Zipf05 {
    #[inline]
    fn next_page(&mut self) -> u32 {
        loop {
            let r = self.rng.unit_f64();
            let k = whole_u32(f64::from(self.pages) * (r * r) + 0.5);
            if (1..=self.pages).contains(&k) {
                return k - 1;
            }
        }
    }
}
