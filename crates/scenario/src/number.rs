//! Conversions between integer types.

pub(crate) use pagetide_quantity::floor;

/// Converts a count or offset to an index. No value is lost, because pagetide runs on 64-bit machines.
#[inline]
pub(crate) fn index(x: u64) -> usize {
    usize::try_from(x).unwrap_or(usize::MAX)
}

/// Converts a small number to `u32`. Values that do not fit become the maximum.
#[inline]
pub(crate) fn narrow(x: u64) -> u32 {
    u32::try_from(x).unwrap_or(u32::MAX)
}

/// Converts a number to the signed type that series use. Values that do not fit become the maximum.
#[inline]
pub(crate) fn signed(x: u64) -> i64 {
    i64::try_from(x).unwrap_or(i64::MAX)
}
