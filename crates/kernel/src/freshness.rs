//! Whether the result of an earlier resolution of a kernel reference may be reused.

/// Whether a kernel reference may resolve to the same kernel as last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Use the kernel of the last resolution if it is still in the cache and its files did not change. No network
    /// access is needed then.
    Pinned,
    /// Resolve the reference again: ask the archive, or read the local files.
    Refresh,
}

impl Freshness {
    /// Returns `Refresh` if `refresh` is true, else `Pinned`.
    pub const fn new(refresh: bool) -> Self {
        if refresh { Self::Refresh } else { Self::Pinned }
    }
}
