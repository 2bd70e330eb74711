//! A range of consecutive memory sizes for which OPT is computed together.

/// A range of consecutive memory sizes.
pub(super) struct Sizes<'a> {
    /// Number of sizes that are smaller than the first size in this range.
    pub first: usize,
    /// A memory of one page more can serve one interval more with an additional token. For each size: the time at which
    /// this additional token became free.
    pub free: &'a mut [u32],
    /// For each size, the number of intervals (hits) that this size can serve but no smaller size can.
    pub hits: &'a mut [u32],
}
