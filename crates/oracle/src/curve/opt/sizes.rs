//! A part of the sizes of memory for which OPT is computed.

/// A run of consecutive sizes of memory.
pub(super) struct Sizes<'a> {
    /// Number of sizes that are smaller than the first size of this run.
    pub first: usize,
    /// For each size, the time at which its additional token became free: the one that the next smaller size does not
    /// have.
    pub free: &'a mut [u32],
    /// For each size, the number of intervals that no smaller size can serve.
    pub hits: &'a mut [u32],
}
