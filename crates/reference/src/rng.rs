//! The random generator of pagetide. Its output must never change under its name.
//!
//! A reference string is only worth recording if it can be generated again, on another machine and years later. So the
//! generator is defined here and not in a dependency that may change it, and [`Rng::NAME`] is stored in records. Any
//! change of an output bit requires a new name.

/// SplitMix64 of Steele, Lea and Flood, a generator used only to expand a seed to the larger state of [`Rng`].
///
/// Source: <https://prng.di.unimi.it/splitmix64.c> (public domain), which the authors of xoshiro recommend for seeding.
#[derive(Debug, Clone)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// xoshiro256** 1.0 by Blackman and Vigna: 256 bits of state, a dozen instructions per number.
///
/// Source: <https://prng.di.unimi.it/xoshiro256starstar.c> (public domain); Blackman and Vigna, "Scrambled linear
/// pseudorandom number generators", ACM TOMS 47(4), 2021.
///
/// ```
/// use pagetide_reference::Rng;
///
/// let mut order = Rng::stream(7, "order");
/// assert!(order.below(6) < 6);
/// assert_eq!(Rng::new(7).next_u64(), Rng::new(7).next_u64());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Name and version of all that this type computes: the raw numbers, the seeding, and the results of its methods.
    pub const NAME: &'static str = "xoshiro256**/1";

    /// Creates a generator from `seed`. The four words of state are the first four SplitMix64 outputs of the seed.
    pub fn new(seed: u64) -> Self {
        let mut mix = SplitMix64(seed);
        Self {
            state: [mix.next(), mix.next(), mix.next(), mix.next()],
        }
    }

    /// Returns a generator for a separate stream per `label`, so that more draws from one stream do not change the
    /// numbers of other streams.
    ///
    /// The label's 64-bit FNV-1a hash is XORed with the seed's first SplitMix64 output, and the result seeds the state.
    pub fn stream(seed: u64, label: &str) -> Self {
        let hash = label.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self::new(SplitMix64(seed).next() ^ hash)
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniform number in `[0, 1)`: the upper 53 bits of one draw, divided by 2^53 (exact).
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / 9_007_199_254_740_992.0;
        (self.next_u64() >> 11) as f64 * SCALE
    }

    /// Returns a uniform number in `0..bound` without bias; 0 if `bound` is 0 or 1.
    ///
    /// Lemire's multiplication with rejection ("Fast random integer generation in an interval", ACM TOMACS 29(1), 2019)
    /// on 64 bits.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        loop {
            let (high, low) = widening_mul(self.next_u64(), bound);
            // The remainder is needed only in the rare case that the lower half may be in the biased part.
            if low >= bound || low >= bound.wrapping_neg().checked_rem(bound).unwrap_or(0) {
                return high;
            }
        }
    }

    /// Returns a uniform number in `0..bound` without bias, from the upper half of one draw; 0 if `bound` is 0 or 1.
    ///
    /// Uses the method of [`below`](Self::below) on 32 bits, but the numbers differ from those of `below`.
    #[inline]
    pub fn below_u32(&mut self, bound: u32) -> u32 {
        loop {
            let product = (self.next_u64() >> 32) * u64::from(bound);
            let low = (product & 0xffff_ffff) as u32;
            if low >= bound || low >= bound.wrapping_neg().checked_rem(bound).unwrap_or(0) {
                return (product >> 32) as u32;
            }
        }
    }

    /// Shuffles `items` uniformly (Fisher and Yates, from the last item down, with one [`below`](Self::below) each).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = u64::try_from(last).unwrap_or(u64::MAX).saturating_add(1);
            let other = usize::try_from(self.below(bound)).unwrap_or(last);
            items.swap(last, other);
        }
    }
}

/// Returns the upper and lower half of the 128-bit product `a · b`.
#[inline]
fn widening_mul(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64, a.wrapping_mul(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers are the first outputs for the state 1, 2, 3, 4, as published with the reference
    /// implementation and used by rand_xoshiro.
    #[test]
    fn the_generator_gives_the_published_numbers_of_xoshiro256_starstar() {
        let mut rng = Rng {
            state: [1, 2, 3, 4],
        };
        let expected = [
            11520,
            0,
            1509978240,
            1215971899390074240,
            1216172134540287360,
            607988272756665600,
            16172922978634559625,
            8476171486693032832,
            10595114339597558777,
            2904607092377533576,
        ];
        assert_eq!(expected.map(|_| rng.next_u64()), expected);
    }

    /// The expected numbers are those published at Rosetta Code for seed 1234567, and those of rand_xoshiro for seed
    /// 1477776061723855037.
    #[test]
    fn seeds_are_spread_with_the_published_numbers_of_splitmix64() {
        let mut mix = SplitMix64(1234567);
        let expected = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ];
        assert_eq!(expected.map(|_| mix.next()), expected);
        let mut mix = SplitMix64(1477776061723855037);
        let expected = [
            1985237415132408290,
            2979275885539914483,
            13511426838097143398,
            8488337342461049707,
        ];
        assert_eq!(expected.map(|_| mix.next()), expected);
    }

    #[test]
    fn labels_give_streams_that_share_no_start() {
        let first = |label| Rng::stream(1, label).next_u64();
        assert_ne!(first("order"), first("start"));
        assert_ne!(first("order"), Rng::new(1).next_u64());
        assert_ne!(first("order"), Rng::stream(2, "order").next_u64());
    }

    #[test]
    fn bounded_numbers_stay_below_their_bound_and_reach_every_value_equally_often() {
        let mut rng = Rng::new(3);
        let mut wide = [0_u32; 6];
        let mut narrow = [0_u32; 6];
        for _ in 0..60_000 {
            wide[usize::try_from(rng.below(6)).unwrap()] += 1;
            narrow[usize::try_from(rng.below_u32(6)).unwrap()] += 1;
        }
        // 10,000 are expected for each value; five standard deviations are 456.
        for count in wide.into_iter().chain(narrow) {
            assert!(count.abs_diff(10_000) < 456, "{wide:?} {narrow:?}");
        }
    }

    #[test]
    fn a_bound_just_above_half_of_all_numbers_is_not_biased() {
        // Without rejection, values below 2^63 would occur twice as often as the others.
        let mut rng = Rng::new(5);
        let bound = (1 << 63) + (1 << 62);
        let low = (0..30_000).filter(|_| rng.below(bound) < 1 << 63).count();
        assert!(low.abs_diff(20_000) < 500, "{low}");
        let bound = (1 << 31) + (1 << 30);
        let low = (0..30_000)
            .filter(|_| rng.below_u32(bound) < 1 << 31)
            .count();
        assert!(low.abs_diff(20_000) < 500, "{low}");
    }

    #[test]
    fn a_bound_of_zero_or_one_gives_zero() {
        let mut rng = Rng::new(1);
        assert_eq!(
            [
                rng.below(0),
                rng.below(1),
                rng.below_u32(0).into(),
                rng.below_u32(1).into()
            ],
            [0; 4]
        );
    }

    #[test]
    fn shuffling_gives_every_order_of_three_equally_often() {
        let mut rng = Rng::new(11);
        let mut seen = std::collections::BTreeMap::<[u8; 3], u32>::new();
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            rng.shuffle(&mut items);
            *seen.entry(items).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(
            seen.values().all(|count| count.abs_diff(10_000) < 456),
            "{seen:?}"
        );
    }
}
