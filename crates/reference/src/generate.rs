//! One file per pattern that needs a state: how its next page is chosen.

pub(crate) mod cycle;
pub mod hot_cold;
pub(crate) mod lognormal;
pub(crate) mod random;
pub mod scan;
pub(crate) mod smooth_sin;
pub(crate) mod urn;
pub mod zipf;
pub(crate) mod zipf05;

/// A source of page indices that never ends by itself.
pub(crate) trait Generator {
    /// The next page index.
    fn next_page(&mut self) -> u32;
}
