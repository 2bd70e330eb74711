//! The number of accesses of a phase, absolute or as passes over the pages.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Number of accesses of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// A number of accesses.
    Accesses(u64),
    /// A multiple of the pages in the part that is accessed, in hundredths, written as `2x` or `0.5x`.
    Passes(u32),
}

/// Maximum number of passes, in hundredths.
const MAX_PASSES: u32 = 100_000;

impl Count {
    /// One pass: as many accesses as there are pages.
    pub const ONE_PASS: Self = Self::Passes(100);

    /// Returns the number of accesses over `pages` pages, at least 1.
    pub fn over(self, pages: u64) -> u64 {
        match self {
            Self::Accesses(count) => count.max(1),
            Self::Passes(passes) => (pages.saturating_mul(u64::from(passes)) / 100).max(1),
        }
    }

    /// Returns true if the text form of the count can be read again.
    pub(crate) fn is_writable(self) -> bool {
        match self {
            Self::Accesses(count) => count > 0,
            Self::Passes(passes) => (1..=MAX_PASSES).contains(&passes),
        }
    }

    /// Returns true if the count is one pass: as many accesses as there are pages.
    pub fn is_one_pass(&self) -> bool {
        *self == Self::ONE_PASS
    }
}

impl Default for Count {
    fn default() -> Self {
        Self::ONE_PASS
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Accesses(count) => count.fmt(f),
            Self::Passes(passes) => write!(f, "{}x", f64::from(passes) / 100.0),
        }
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no number of accesses: give a number such as 5000, or passes from 0.01x to 1000x"
            )
        };
        let trimmed = text.trim();
        let Some(passes) = trimmed.strip_suffix('x') else {
            let count = trimmed.replace('_', "").parse().map_err(|_| wrong())?;
            return if count == 0 {
                Err(wrong())
            } else {
                Ok(Self::Accesses(count))
            };
        };
        let percent: crate::Size = format!("{passes}%").parse().map_err(|_| wrong())?;
        // Passes are parsed like a share: a number with at most two digits after the point, stored in hundredths.
        match percent {
            crate::Size::Share(passes) if passes <= MAX_PASSES => Ok(Self::Passes(passes)),
            _ => Err(wrong()),
        }
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Accesses(count) => serializer.serialize_u64(*count),
            Self::Passes(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of accesses such as 5000, or passes such as \"2x\"")
            }
            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Count, E> {
                count.to_string().parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Count, E> {
                count.to_string().parse().map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Count, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_numbers_or_passes() {
        assert_eq!("5000".parse(), Ok(Count::Accesses(5000)));
        assert_eq!("2x".parse(), Ok(Count::Passes(200)));
        assert_eq!(
            "0.25x".parse::<Count>().map(|count| count.over(1000)),
            Ok(250)
        );
        for text in ["0", "x", "0x", "-1", "1.5", "5y"] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
    }
}
