//! Sizes and times as separate types, so that a size cannot be passed for a time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::number::floor;

/// Size of a base page in bytes. pagetide measures x86-64 only, where it is fixed.
pub const PAGE_SIZE: u64 = 4096;

/// A size in bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A number of base pages of 4 KiB.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Pages(pub u64);

/// A duration, or a reading of a monotonic clock, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// Implements saturating addition and subtraction for a type.
macro_rules! saturating {
    ($($name:ident)*) => {$(
        impl $name {
            /// Returns the difference `self` − `other`; zero if `other` is larger.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// Returns the sum of `self` and `other`; the largest value on overflow.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }
    )*};
}

saturating!(Bytes Pages Nanos);

/// Why a text is not a size or a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The number before the unit is missing, negative or malformed, or has more than 15 decimal places.
    #[error("`{text}` is not a {what}: write a positive number and a unit, such as {example}")]
    NotANumber {
        /// The refused text.
        text: String,
        /// What was expected: "size" or "time".
        what: &'static str,
        /// A valid example of a size or time.
        example: &'static str,
    },
    /// The unit after the number is unknown.
    #[error("`{text}` has the unknown unit `{unit}`: use one of {known}")]
    UnknownUnit {
        /// The refused text.
        text: String,
        /// The unknown unit.
        unit: String,
        /// List of the known units, as text.
        known: &'static str,
    },
    /// The value does not fit into 64 bits.
    #[error("`{text}` is too large: use a smaller {what}")]
    TooLarge {
        /// The refused text.
        text: String,
        /// What was expected: "size" or "time".
        what: &'static str,
    },
}

/// Parses a number with a unit and returns number × unit. Exact for whole numbers; a fraction is rounded down. `known`
/// lists the units for the error message.
fn parse(
    text: &str,
    what: &'static str,
    example: &'static str,
    known: &'static str,
    unit_of: impl Fn(&str) -> Option<u64>,
) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let (number, unit) = (number.replace('_', ""), unit.trim());
    let not_a_number = || UnitError::NotANumber {
        text: text.to_owned(),
        what,
        example,
    };
    if number.is_empty() {
        return Err(not_a_number());
    }
    let scale = unit_of(unit).ok_or_else(|| UnitError::UnknownUnit {
        text: text.to_owned(),
        unit: unit.to_owned(),
        known,
    })?;
    let too_large = || UnitError::TooLarge {
        text: text.to_owned(),
        what,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if fraction.contains('.') || fraction.len() > 15 || (whole.is_empty() && fraction.is_empty()) {
        return Err(not_a_number());
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| too_large())?
    };
    let mut value = whole.checked_mul(scale).ok_or_else(too_large)?;
    if !fraction.is_empty() {
        let parts: u128 = fraction.parse().map_err(|_| not_a_number())?;
        let of = 10_u128.pow(u32::try_from(fraction.len()).map_err(|_| not_a_number())?);
        let part = u64::try_from(parts * u128::from(scale) / of).map_err(|_| too_large())?;
        value = value.checked_add(part).ok_or_else(too_large)?;
    }
    Ok(value)
}

impl FromStr for Bytes {
    type Err = UnitError;

    /// Parses a size such as `4096`, `64K`, `160M` or `1.5GiB`. Prefixes are binary, as in kernel parameters.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(
            text,
            "size",
            "160M",
            "K, M, G, T (binary, with or without iB)",
            |unit| {
                let unit = unit.to_ascii_lowercase();
                let prefix = unit
                    .strip_suffix("ib")
                    .or_else(|| unit.strip_suffix('b'))
                    .unwrap_or(&unit);
                Some(match prefix {
                    "" => 1,
                    "k" => 1 << 10,
                    "m" => 1 << 20,
                    "g" => 1 << 30,
                    "t" => 1 << 40,
                    _ => return None,
                })
            },
        )
        .map(Bytes)
    }
}

impl FromStr for Nanos {
    type Err = UnitError;

    /// Parses a time such as `80us`, `2ms`, `1.5s`, `250ns` or `5min`. The unit is required.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, "time", "80us", "ns, us, ms, s, min, h", |unit| {
            Some(match unit {
                "ns" => 1,
                "us" | "µs" | "μs" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "min" => 60_000_000_000,
                "h" => 3_600_000_000_000,
                _ => return None,
            })
        })
        .map(Nanos)
    }
}

impl Bytes {
    /// Returns the size of `n` KiB.
    pub const fn from_kib(n: u64) -> Self {
        Bytes(n << 10)
    }

    /// Returns the size of `n` MiB.
    pub const fn from_mib(n: u64) -> Self {
        Bytes(n << 20)
    }

    /// Returns the number of whole pages in this size, rounded down.
    pub const fn pages(self) -> Pages {
        Pages(self.0 / PAGE_SIZE)
    }

    /// Returns this size multiplied by a factor, rounded down to whole bytes; 0 for a negative factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self(floor(self.0 as f64 * factor))
    }
}

impl Pages {
    /// Returns the size of these pages in bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 * PAGE_SIZE)
    }
}

impl Nanos {
    /// Returns the time of `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Nanos(n * 1_000)
    }

    /// Returns the time of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Nanos(n * 1_000_000)
    }

    /// Returns the time of `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Nanos(n * 1_000_000_000)
    }

    /// Returns the date and time of the wall clock in nanoseconds since 1970 (UTC); zero if it shows an earlier date.
    pub fn wall_clock() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Nanos(since.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Formats the time for planning: in seconds below two minutes, in minutes below two hours (both rounded up), in
    /// hours and minutes below two days, otherwise in days (both rounded down).
    pub fn about(self) -> String {
        let seconds = self.0.div_ceil(1_000_000_000);
        match seconds {
            0..120 => format!("{seconds} s"),
            120..7200 => format!("{} min", seconds.div_ceil(60)),
            7200..172_800 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
            _ => format!("{} days", seconds / 86_400),
        }
    }

    /// Returns the time in seconds, with a fraction.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Formats `value` with about three significant digits, without trailing zeros, and the unit.
fn short(f: &mut fmt::Formatter<'_>, value: f64, unit: &str) -> fmt::Result {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let mut text = format!("{value:.digits$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    write!(f, "{text} {unit}")
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0 as f64;
        match self.0 {
            0..1024 => write!(f, "{} B", self.0),
            1024..1_048_576 => short(f, value / 1024.0, "KiB"),
            1_048_576..1_073_741_824 => short(f, value / 1_048_576.0, "MiB"),
            _ => short(f, value / 1_073_741_824.0, "GiB"),
        }
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pages", self.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => short(f, value / 1e3, "µs"),
            1_000_000..1_000_000_000 => short(f, value / 1e6, "ms"),
            _ => short(f, value / 1e9, "s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_as_a_person_plans_by_them() {
        assert_eq!(Nanos(1).about(), "1 s");
        assert_eq!(Nanos::from_secs(119).about(), "119 s");
        assert_eq!(Nanos::from_secs(121).about(), "3 min");
        assert_eq!(Nanos::from_secs(7260).about(), "2 h 1 min");
        assert_eq!(Nanos::from_secs(200_000).about(), "2 days");
    }

    #[test]
    fn sizes_are_parsed_with_binary_prefixes() {
        assert_eq!("160M".parse(), Ok(Bytes(160 << 20)));
        assert_eq!("1.5GiB".parse(), Ok(Bytes(3 << 29)));
        assert_eq!("4096".parse(), Ok(Bytes(4096)));
        assert_eq!("64 kB".parse(), Ok(Bytes(65536)));
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!("80us".parse(), Ok(Nanos(80_000)));
        assert_eq!("1.5s".parse(), Ok(Nanos(1_500_000_000)));
        assert!(matches!(
            "80".parse::<Nanos>(),
            Err(UnitError::UnknownUnit { .. })
        ));
    }

    #[test]
    fn nonsense_is_refused_with_its_reason() {
        assert!(matches!(
            "-5M".parse::<Bytes>(),
            Err(UnitError::NotANumber { .. })
        ));
        assert!(matches!(
            "".parse::<Bytes>(),
            Err(UnitError::NotANumber { .. })
        ));
        assert!(matches!(
            "1.2.3M".parse::<Bytes>(),
            Err(UnitError::NotANumber { .. })
        ));
        assert!(matches!(
            "5X".parse::<Bytes>(),
            Err(UnitError::UnknownUnit { .. })
        ));
        assert!(matches!(
            "99999999999T".parse::<Bytes>(),
            Err(UnitError::TooLarge { .. })
        ));
    }

    #[test]
    fn quantities_are_shown_in_readable_units() {
        assert_eq!(Bytes(160 << 20).to_string(), "160 MiB");
        assert_eq!(Nanos(80_000).to_string(), "80 µs");
        assert_eq!(Nanos(1_234_000_000).to_string(), "1.23 s");
    }
}
