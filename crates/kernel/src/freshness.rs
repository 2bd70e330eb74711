//! Whether the result of an earlier resolution of a kernel reference may be used again.

/// Whether to use the kernel to which a reference was resolved last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Use the kernel of the last resolution if it is still in the cache. No network access is needed.
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
