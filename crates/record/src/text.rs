//! Text forms of sizes and times that can be parsed back to the same value, and their use in JSON.

use pagetide_quantity::{Bytes, Nanos};

/// Formats a size exactly, in the largest binary unit that divides the size, so that the text can be parsed back to the
/// same value.
pub fn exact_size(bytes: Bytes) -> String {
    for (shift, unit) in [(30, "G"), (20, "M"), (10, "K")] {
        if bytes.0 != 0 && bytes.0.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes.0 >> shift);
        }
    }
    bytes.0.to_string()
}

/// Formats a time exactly, in the largest unit that divides the time.
pub fn exact_time(time: Nanos) -> String {
    for (scale, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if time.0 != 0 && time.0.is_multiple_of(scale) {
            return format!("{}{unit}", time.0 / scale);
        }
    }
    format!("{}ns", time.0)
}

/// Implements serde serialisation and deserialisation for a type through its text form (`Display` and `FromStr`).
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use serde_as_text;
