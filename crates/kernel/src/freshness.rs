//! Whether an earlier resolution of a reference may be used again.

/// Whether the kernel of the last resolution may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Use the kernel of the last resolution if it is still in the cache. This needs no network.
    Pinned,
    /// Ask the archive, or read the local files again.
    Refresh,
}

impl Freshness {
    /// Returns `Refresh` if `refresh` is true, else `Pinned`.
    pub const fn new(refresh: bool) -> Self {
        if refresh { Self::Refresh } else { Self::Pinned }
    }
}
