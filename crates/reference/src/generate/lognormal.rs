//! The pattern `lognormal`: VM Regress's log-normal pattern.

use super::Generator;
use crate::number::whole_u32;
use crate::rng::Rng;

/// Scale from 32-bit integers to fractions: 2^−32.
const SCALE: f64 = 1.0 / 4_294_967_296.0;

/// The parameter μ of the original.
const MU: f64 = 8.0;

/// Generator of `lognormal`: page ⌊e^(μ+σ·|z|) − e^μ + 0.5⌋, drawn again if outside of 1 … range−1, with μ = 8, σ =
/// ln(range + e^μ) − μ + 1 and z the sum of 12 uniform numbers minus 6.
///
/// The sum of 12 uniform numbers has variance 1 and approximates a normal variate. Page 0 is never referenced. Origin:
/// VM Regress (2002).
#[derive(Debug, Clone)]
pub(crate) struct Lognormal {
    pages: u32,
    sigma: f64,
    /// The constant e^μ.
    base: f64,
    /// Limit for |z|. Above it the page is outside of the range, so the exponential need not be computed.
    hopeless: f64,
    rng: Rng,
}

impl Lognormal {
    pub(crate) fn new(pages: u32, seed: u64) -> Self {
        let base = libm::exp(MU);
        let range = f64::from(pages);
        let sigma = libm::log(range + base) - MU + 1.0;
        Self {
            pages,
            sigma,
            base,
            // Solved for |z| at page range + 1, which is further away than any rounding error.
            hopeless: (libm::log(range + 1.0 + base) - MU) / sigma,
            rng: Rng::stream(seed, "lognormal"),
        }
    }

    /// Draws |z|, where z is the sum of 12 uniform numbers minus 6. The result is exact: the numbers are multiples of
    /// 2^−32, two from each draw.
    #[inline]
    fn deviate(&mut self) -> f64 {
        let mut sum = 0;
        for _ in 0..6 {
            let bits = self.rng.next_u64();
            sum += (bits >> 32) + (bits & 0xffff_ffff);
        }
        (sum as f64 * SCALE - 6.0).abs()
    }
}

impl Generator for Lognormal {
    #[inline]
    fn next_page(&mut self) -> u32 {
        loop {
            let z = self.deviate();
            if z > self.hopeless {
                continue;
            }
            let page = libm::exp(MU + self.sigma * z) - self.base + 0.5;
            let page = whole_u32(page);
            if (1..self.pages).contains(&page) {
                return page;
            }
        }
    }
}
