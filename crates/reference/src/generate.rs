//! One file per pattern with a state: how it selects the next page.

pub mod cold_first;
pub(crate) mod cycle;
pub mod hot_cold;
pub(crate) mod lognormal;
pub(crate) mod random;
pub mod scan;
pub(crate) mod smooth_sin;
pub(crate) mod urn;
pub mod zipf;
pub(crate) mod zipf05;

/// An endless source of page indices.
pub(crate) trait Generator {
    /// Returns the next page index.
    fn next_page(&mut self) -> u32;
}
