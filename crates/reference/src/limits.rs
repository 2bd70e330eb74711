//! Limits of a reference string: number of pages and number of references.

/// Maximum number of pages in the range of a pattern: 2^28, a tebibyte of 4 KiB pages.
pub const MAX_PAGES: u32 = 1 << 28;

/// Maximum number of references in a string, so that every count fits into 32 bits.
pub const MAX_REFS: u64 = u32::MAX as u64;
