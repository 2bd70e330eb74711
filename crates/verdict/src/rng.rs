//! A random generator that never changes, so that the same seed gives the same verdict on every machine and in every
//! version.
//!
//! Reference strings use another generator (`pagetide_reference::Rng`, xoshiro256\*\*). Permutation p-values and
//! bootstrap intervals of existing judgements depend on the generator of this file and must stay reproducible.

/// xoshiro256++ 1.0 (Blackman and Vigna 2019), seeded through splitmix64. Its output must never change. A different
/// generator must have a different name.
#[derive(Clone, Debug)]
pub struct Xoshiro {
    state: [u64; 4],
}

impl Xoshiro {
    /// Creates a generator for `seed`. Every seed is valid, including zero.
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        let mut next = || {
            mixer = mixer.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = mixer;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self {
            state: [next(), next(), next(), next()],
        }
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let shifted = b << 17;
        let c = c ^ a;
        let d = d ^ b;
        self.state = [a ^ d, b ^ c, c ^ shifted, d.rotate_left(45)];
        result
    }

    /// Returns a uniform number in [0, 1), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9007199254740992.0)
    }

    /// Returns a uniform integer from 0 to `bound` − 1, without bias (Lemire 2019); 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let range = u128::from(u64::try_from(bound).unwrap_or(u64::MAX));
        if range == 0 {
            return 0;
        }
        let threshold = (u128::from(u64::MAX) + 1) % range;
        loop {
            let product = u128::from(self.bits()) * range;
            if product & u128::from(u64::MAX) >= threshold {
                return usize::try_from(product >> 64).unwrap_or(usize::MAX);
            }
        }
    }

    /// Returns a standard normal variate, by Marsaglia's polar method.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }

    /// Shuffles `items` (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut random = Xoshiro::new(0);
        let drawn: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        // From the reference C code, seeded by splitmix64 from 0.
        assert_eq!(
            drawn,
            [0x53175d61490b23df, 0x61da6f3dc380d507, 0x5c0fdf91ec9a7bfc]
        );
    }

    #[test]
    fn draws_below_a_bound_are_even() {
        let mut random = Xoshiro::new(7);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[random.below(6)] += 1;
        }
        assert!(
            counts.iter().all(|&count| (9_600..10_400).contains(&count)),
            "{counts:?}"
        );
    }
}
