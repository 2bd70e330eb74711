//! Conversions between number types, each in one place with its reason.

pub(crate) use pagetide_quantity::floor;

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
