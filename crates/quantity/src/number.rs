//! Conversions between floats and integers, in one place with their reason.

/// The largest whole number not above `value`; 0 for negative numbers and for NaN, the type's maximum for larger ones.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the language defines this cast as truncating and saturating, which is what is wanted"
)]
#[inline]
pub fn floor(value: f64) -> u64 {
    value as u64
}
