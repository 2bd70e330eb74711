//! The pattern `cold-first`: the first pages of the range are never referenced.

use super::Generator;
use crate::number::part_of;
use crate::rng::Rng;

/// Parameter of the pattern `cold-first`. The catalogue of patterns describes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColdFirst {
    /// Size of the cold part as a fraction of all pages, 0 to 1. At least one page is cold and at least one is used.
    pub cold: f64,
}

/// Generator of the references of [`ColdFirst`].
#[derive(Debug, Clone)]
pub(crate) struct AfterCold {
    first: u32,
    used: u32,
    rng: Rng,
}

impl AfterCold {
    pub(crate) fn new(parameters: ColdFirst, pages: u32, seed: u64) -> Self {
        let first = part_of(pages, parameters.cold);
        Self {
            first,
            used: pages - first,
            rng: Rng::stream(seed, "cold-first"),
        }
    }
}

impl Generator for AfterCold {
    #[inline]
    fn next_page(&mut self) -> u32 {
        self.first + self.rng.below_u32(self.used)
    }
}

#[cfg(test)]
mod tests {
    use crate::Pattern;

    #[test]
    fn the_first_pages_are_never_used_and_all_others_are() {
        let pattern: Pattern = "cold-first(0.25)".parse().unwrap();
        let counts = pattern.counts(400, 20_000, 7).unwrap();
        assert!(counts[..100].iter().all(|count| *count == 0));
        assert!(counts[100..].iter().all(|count| *count > 20));
        for cold in ["0", "1"] {
            let pattern: Pattern = format!("cold-first({cold})").parse().unwrap();
            let used = pattern.counts(2, 10, 1).unwrap();
            assert_eq!(used, [0, 10], "at least one page is cold and one is used");
        }
    }
}
