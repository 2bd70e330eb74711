//! The pattern `zipf`: Zipf's law with any exponent.

use super::Generator;
use crate::number::whole_u32;
use crate::rng::Rng;

/// Parameters of Zipf's law. The catalogue of patterns describes them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zipf {
    /// Exponent, 0 to 16; larger values are steeper.
    pub exponent: f64,
    /// True to spread the ranks over the pages pseudorandomly; false if page 0 has the first rank.
    pub scatter: bool,
}

/// Generator of a [`Zipf`]: rank k of 1 … range with probability proportional to k^−exponent.
///
/// Rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996. Constant memory, no table, fewer than 1.2 draws per reference. The paper's H
/// and its inverse divide by 1 − exponent; written with ln(1+x)/x and (e^x−1)/x they are also accurate at and near
/// exponent 1.
#[derive(Debug, Clone)]
pub(crate) struct ZipfPages {
    pages: u32,
    exponent: f64,
    /// H(1.5) − 1 and H(range + 0.5): the bounds of the inverted integral.
    integral_first: f64,
    integral_last: f64,
    /// The distance from x within which k is accepted immediately: 2 − H⁻¹(H(2.5) − h(2)).
    squeeze: f64,
    scatter: Option<Scatter>,
    rng: Rng,
}

impl ZipfPages {
    pub(crate) fn new(parameters: &Zipf, pages: u32, seed: u64) -> Self {
        let mut zipf = Self {
            pages,
            exponent: parameters.exponent,
            integral_first: 0.0,
            integral_last: 0.0,
            squeeze: 0.0,
            scatter: parameters.scatter.then(|| Scatter::new(pages, seed)),
            rng: Rng::stream(seed, "zipf"),
        };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(f64::from(pages) + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// Returns the weight of x: h(x) = x^−exponent.
    fn weight(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// Returns the integral of the weight: H(x) = (x^(1−exponent) − 1)/(1 − exponent), or ln x at exponent 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        exp_minus_one_over((1.0 - self.exponent) * log) * log
    }

    /// Returns the inverse of the integral: H⁻¹(y).
    fn inverse(&self, y: f64) -> f64 {
        // Rounding may move the product slightly below −1, where the logarithm is undefined.
        let t = (y * (1.0 - self.exponent)).max(-1.0);
        libm::exp(log_of_one_plus_over(t) * y)
    }

    #[inline]
    fn rank(&mut self) -> u32 {
        loop {
            let r = self.rng.unit_f64();
            let u = self.integral_last + r * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = whole_u32(x + 0.5).clamp(1, self.pages);
            let nearest = f64::from(k);
            if nearest - x <= self.squeeze
                || u >= self.integral(nearest + 0.5) - self.weight(nearest)
            {
                return k;
            }
        }
    }
}

impl Generator for ZipfPages {
    #[inline]
    fn next_page(&mut self) -> u32 {
        let page = self.rank() - 1;
        match &self.scatter {
            Some(scatter) => scatter.place(page),
            None => page,
        }
    }
}

/// Computes ln(1+x)/x, with a series near 0.
fn log_of_one_plus_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::log1p(x) / x
    } else {
        1.0 - x * (0.5 - x * (1.0 / 3.0 - 0.25 * x))
    }
}

/// Computes (e^x−1)/x, with a series near 0.
fn exp_minus_one_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::expm1(x) / x
    } else {
        1.0 + x * 0.5 * (1.0 + x * (1.0 / 3.0) * (1.0 + 0.25 * x))
    }
}

/// A pseudorandom permutation of the pages without a table.
///
/// Four rounds of a balanced Feistel network over the next even number of bits, repeated until the result is a page
/// (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). It need not be secure, only without locality.
#[derive(Debug, Clone)]
struct Scatter {
    pages: u32,
    half: u32,
    keys: [u32; 4],
}

impl Scatter {
    fn new(pages: u32, seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "scatter");
        let bits = pages
            .saturating_sub(1)
            .checked_ilog2()
            .map_or(1, |top| top + 1);
        Self {
            pages,
            half: bits.div_ceil(2),
            keys: [(); 4].map(|()| (rng.next_u64() >> 32) as u32),
        }
    }

    fn place(&self, page: u32) -> u32 {
        let mask = (1 << self.half) - 1;
        let mut value = page;
        loop {
            let (mut left, mut right) = (value >> self.half, value & mask);
            for key in self.keys {
                let mut mixed = (right ^ key).wrapping_mul(0x9e37_79b1);
                mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85eb_ca6b);
                (left, right) = (right, left ^ ((mixed ^ (mixed >> 13)) & mask));
            }
            value = (left << self.half) | right;
            // There are at most four times as many values as pages, so fewer than four repetitions are needed on
            // average. It always ends, because a cycle of a permutation returns to its start, which is a page.
            if value < self.pages {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_is_a_permutation_whatever_the_number_of_pages() {
        for pages in [1, 2, 3, 4, 5, 1000, 4096, 4097] {
            let scatter = Scatter::new(pages, 9);
            let mut seen: Vec<_> = (0..pages).map(|page| scatter.place(page)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..pages), "{pages} pages");
        }
    }

    #[test]
    fn the_integral_and_its_inverse_undo_each_other_at_and_around_exponent_one() {
        for exponent in [0.0, 0.5, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 1.5, 4.0] {
            let zipf = ZipfPages::new(
                &Zipf {
                    exponent,
                    scatter: false,
                },
                1000,
                1,
            );
            for x in [1.0, 1.5, 7.25, 900.0] {
                let back = zipf.inverse(zipf.integral(x));
                assert!(
                    (back - x).abs() < 1e-4 * x,
                    "exponent {exponent}: {x} became {back}"
                );
            }
        }
    }
}
