//! The size of a page.

/// Size of a page in memory.
pub(crate) const PAGE: usize = 4096;
