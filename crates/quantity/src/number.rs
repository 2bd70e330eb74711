//! Conversions from floating-point numbers to integers.

/// Returns the largest whole number not above `value`. Negative numbers and NaN give 0; numbers above the range of
/// `u64` give `u64::MAX`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the language defines this cast as truncating and saturating, which is what is wanted"
)]
#[inline]
pub fn floor(value: f64) -> u64 {
    value as u64
}
