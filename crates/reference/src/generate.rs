//! The patterns that have a state, one file each: how they select the next page.

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

/// An endless sequence of page indices.
pub(crate) trait Generator {
    /// Returns the next page index.
    fn next_page(&mut self) -> u32;
}
