//! Conversions between number types, each in one place with its reason.

/// The integer part of `x`; values below 0 and no-numbers give 0, values above the type give its maximum.
pub(crate) fn floor(x: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the language defines this cast as truncating and saturating, which is what is wanted"
    )]
    {
        x as u64
    }
}

/// A count or offset as an index; pagetide runs on 64-bit machines, where nothing is lost.
#[inline]
pub(crate) fn index(x: u64) -> usize {
    usize::try_from(x).unwrap_or(usize::MAX)
}

/// A number that is known to be small; saturates where it is not.
#[inline]
pub(crate) fn narrow(x: u64) -> u32 {
    u32::try_from(x).unwrap_or(u32::MAX)
}

/// A number as the signed type that series hold; saturates.
#[inline]
pub(crate) fn signed(x: u64) -> i64 {
    i64::try_from(x).unwrap_or(i64::MAX)
}
