//! Size of the kernel's trace ring buffer, which holds the events of an observed trial until they are read.

use std::fmt;
use std::str::FromStr;

use pagetide_quantity::Bytes;

use crate::text::{exact_size, serde_as_text};

/// Size of the trace ring buffer of an observed trial: a power of two from [`Self::MIN`] to [`Self::MAX`].
///
/// The size determines which events are lost, so it is part of the subject of an observed trial. A timed trial has no
/// ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceRing(Bytes);

impl TraceRing {
    /// Minimum size: the kernel's minimum of two pages.
    pub const MIN: Self = Self(Bytes(8 << 10));
    /// Maximum size, and the default. More would not fit into the memory that every trial reserves for an observer. At
    /// 80 MB of events per second, more than any kernel writes, the buffer is half full when it is read.
    pub const MAX: Self = Self(Bytes(4 << 20));

    /// Returns the size of the ring buffer in bytes.
    pub const fn bytes(self) -> Bytes {
        self.0
    }

    /// Returns true if the size is the default.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns all allowed sizes, largest first.
    pub fn all() -> impl Iterator<Item = Self> {
        let smaller = |ring: &Self| (*ring > Self::MIN).then_some(Self(Bytes(ring.0.0 / 2)));
        std::iter::successors(Some(Self::MAX), smaller)
    }
}

impl Default for TraceRing {
    fn default() -> Self {
        Self::MAX
    }
}

impl fmt::Display for TraceRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&exact_size(self.0))
    }
}

/// Error: this text is not an allowed size of a trace ring buffer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size of a trace ring: give a power of two from 8K to 4M, such as 64K")]
pub struct TraceRingError(String);

impl FromStr for TraceRing {
    type Err = TraceRingError;

    fn from_str(text: &str) -> Result<Self, TraceRingError> {
        text.parse::<Bytes>()
            .ok()
            .and_then(|size| Self::all().find(|ring| ring.0 == size))
            .ok_or_else(|| TraceRingError(text.to_owned()))
    }
}

serde_as_text!(TraceRing);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_a_power_of_two_between_its_bounds() {
        for (text, bytes) in [("8K", 8 << 10), ("64K", 64 << 10), ("4M", 4 << 20)] {
            let ring: TraceRing = text.parse().unwrap();
            assert_eq!(
                (ring.bytes(), ring.to_string().as_str()),
                (Bytes(bytes), text)
            );
        }
        for text in ["4K", "8M", "100K", "big", ""] {
            let why = text.parse::<TraceRing>().unwrap_err().to_string();
            assert!(why.contains("8K to 4M"), "{why}");
        }
        assert_eq!(TraceRing::all().count(), 10);
    }
}
