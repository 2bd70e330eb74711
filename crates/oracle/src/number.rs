//! Conversions between page numbers and indices.

/// Converts a page or slot number to an index.
#[inline]
pub(crate) const fn at(number: u32) -> usize {
    number as usize
}

/// Converts an index to a page or slot number. The index must be below 2^32.
#[inline]
pub(crate) const fn narrow(index: usize) -> u32 {
    debug_assert!(index <= u32::MAX as usize);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "strings and tables are refused before they reach 2^32 entries"
    )]
    {
        index as u32
    }
}

/// Converts a number to 32 bits. The number must be below 2^32.
#[inline]
pub(crate) const fn low32(number: u64) -> u32 {
    debug_assert!(number <= u32::MAX as u64);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "times and sizes are refused before they reach 2^32"
    )]
    {
        number as u32
    }
}

/// Truncates `x` to an integer. Negative numbers become 0, large ones the maximum.
#[inline]
pub(crate) fn whole(x: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the language defines this cast as truncating and saturating, which is what is wanted"
    )]
    {
        x as u32
    }
}

/// Returns the fraction `share` of `size` pages, rounded down and limited to `least`..=`most`.
pub(crate) fn part(size: u32, share: f64, least: u32, most: u32) -> u32 {
    whole(f64::from(size) * share).clamp(least, most.max(least))
}

/// Converts a number to 16 bits. The number must be below 2^15.
#[inline]
pub(crate) fn low15(number: usize) -> i16 {
    debug_assert!(i16::try_from(number).is_ok());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "times are numbered anew before they reach 2^15"
    )]
    {
        number as i16
    }
}
