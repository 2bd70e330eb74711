//! Units as types: a count of pages is not a count of bytes, and neither is a time.

use serde::{Deserialize, Serialize};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident, $suffix:literal) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The bare number, in the unit the type is named after.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The difference, or zero where `other` is larger.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// The sum, held at the largest representable value.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!("{} ", $suffix), self.0)
            }
        }
    };
}

unit!(
    /// Nanoseconds: a duration, or a moment on the clock that the source names.
    Nanos,
    "ns"
);
unit!(
    /// Base pages (4,096 bytes on x86-64).
    Pages,
    "pages"
);
unit!(
    /// Bytes.
    Bytes,
    "bytes"
);
