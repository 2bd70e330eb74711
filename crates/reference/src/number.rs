//! Conversions between the floating-point formulas of patterns and page numbers.

pub(crate) use pagetide_quantity::floor as whole_u64;

/// Returns the integer part of `x`: 0 for negative values and NaN, the type's maximum for values above it.
#[inline]
pub(crate) fn whole_u32(x: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the language defines this cast as truncating and saturating, which is what is wanted"
    )]
    {
        x as u32
    }
}

/// Returns the number of pages that make up the fraction `share` of `pages`, rounded to nearest. At least 1 and at most
/// `pages` − 1, so that neither part is empty.
pub(crate) fn part_of(pages: u32, share: f64) -> u32 {
    whole_u32(libm::round(f64::from(pages) * share)).clamp(1, pages.saturating_sub(1).max(1))
}

/// Converts a page to an index of a slice. Pages are below 2^28, so this is exact on every supported platform.
#[inline]
pub(crate) fn index(page: u32) -> usize {
    page as usize
}
