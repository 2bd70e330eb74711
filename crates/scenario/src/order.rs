//! Visits every page of a range exactly once, in ascending or scattered order, without storing a list of pages.

/// Iterator over the pages `0..pages`, each once.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pages: u64,
    left: u64,
    /// Smallest power of two that is at least `pages`, minus one. States of the generator are masked with it.
    mask: u64,
    half: u32,
    state: u64,
    step: u64,
    scattered: bool,
}

impl Order {
    /// Returns the pages in ascending order.
    pub(crate) const fn ascending(pages: u64) -> Self {
        Self {
            pages,
            left: pages,
            mask: u64::MAX,
            half: 0,
            state: 0,
            step: 1,
            scattered: false,
        }
    }

    /// Returns the pages in a random-looking order that depends on `seed`: a linear congruential generator of full
    /// period (Hull and Dobell, 1962) over the next power of two, with its upper bits mixed into the lower ones.
    /// Numbers outside of the range are skipped.
    pub(crate) fn scattered(pages: u64, seed: u64) -> Self {
        let mask = pages.next_power_of_two() - 1;
        Self {
            pages,
            left: pages,
            mask,
            half: (64 - mask.leading_zeros()).div_ceil(2),
            state: seed & mask,
            // Any odd increment gives the full period.
            step: (seed >> 20) | 1,
            scattered: true,
        }
    }
}

impl Iterator for Order {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        if !self.scattered {
            return Some(self.pages - self.left - 1);
        }
        loop {
            // A full period over a power of two needs a multiplier of 1 modulo 4; this one is 5 modulo 8.
            self.state = self
                .state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(self.step)
                & self.mask;
            let mixed = self.state ^ self.state >> self.half;
            if mixed < self.pages {
                return Some(mixed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_page_comes_exactly_once(pages in 1_u64..3000, seed in any::<u64>()) {
            for order in [Order::ascending(pages), Order::scattered(pages, seed)] {
                let mut seen: Vec<u64> = order.collect();
                seen.sort_unstable();
                prop_assert!(seen.iter().copied().eq(0..pages));
            }
        }
    }

    #[test]
    fn a_scattered_order_has_few_neighbours() {
        let order: Vec<u64> = Order::scattered(10_000, 7).collect();
        let neighbours = order
            .windows(2)
            .filter(|pair| pair[0].abs_diff(pair[1]) <= 8)
            .count();
        assert!(neighbours < 100, "{neighbours}");
    }
}
