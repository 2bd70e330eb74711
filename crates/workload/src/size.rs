//! Sizes in a workload: a share of the memory of the trial, or a number of bytes.

use std::fmt;
use std::str::FromStr;

use pagetide_quantity::{Bytes, Pages, UnitError};

use crate::form::text_form;

/// A size in a workload. A share grows with the memory of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// A number of bytes, written as `64K` or `8M`.
    Bytes(Bytes),
    /// A share of memory in hundredths of a percent, written as `80%` or `12.5%`.
    Share(u32),
}

/// Why a text is not a size of a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The share is not a number from 0.01 to 1000 percent.
    #[error(
        "`{0}` is not a share of memory: give 0.01% to 1000%, with at most two digits after the point"
    )]
    Share(String),
    /// The size in bytes cannot be read.
    #[error("{0}; a share of memory is written as 80%")]
    Bytes(#[from] UnitError),
}

/// Maximum share, in hundredths of a percent: ten times the memory.
const MAX_SHARE: u32 = 100_000;

impl Size {
    /// Returns a size of `percent` percent of the trial's memory.
    pub fn percent(percent: u32) -> Self {
        Self::Share(percent.saturating_mul(100))
    }

    /// Returns true if the text form of the size can be read again.
    pub(crate) fn is_writable(self) -> bool {
        match self {
            Self::Bytes(_) => true,
            Self::Share(share) => (1..=MAX_SHARE).contains(&share),
        }
    }

    /// Returns the size in bytes on a machine with this memory: whole pages, at least one.
    pub fn of(self, memory: Bytes) -> Bytes {
        let bytes = match self {
            Self::Bytes(bytes) => bytes.0,
            Self::Share(share) => {
                let wide = u128::from(memory.0) * u128::from(share) / 10_000;
                u64::try_from(wide).unwrap_or(u64::MAX)
            }
        };
        Bytes((bytes / 4096).max(1) * 4096)
    }

    /// Returns the size in bytes as a limit of a memory cgroup: like [`Self::of`], but zero bytes stay 0.
    pub fn limit_of(self, memory: Bytes) -> Bytes {
        match self {
            Self::Bytes(Bytes(0)) => Bytes(0),
            _ => self.of(memory),
        }
    }

    /// Returns the size in pages on a machine with this memory, at least 1.
    pub fn pages(self, memory: Bytes) -> Pages {
        Pages(self.of(memory).0 / 4096)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Share(share) => {
                write!(f, "{}", share / 100)?;
                match share % 100 {
                    0 => {}
                    tenths if tenths.is_multiple_of(10) => write!(f, ".{}", tenths / 10)?,
                    rest => write!(f, ".{rest:02}")?,
                }
                f.write_str("%")
            }
            Self::Bytes(Bytes(bytes)) => {
                let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
                match units
                    .iter()
                    .find(|(unit, _)| bytes != 0 && bytes % unit == 0)
                {
                    Some((unit, name)) => write!(f, "{}{name}", bytes / unit),
                    None => write!(f, "{bytes}"),
                }
            }
        }
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let Some(share) = text.trim().strip_suffix('%') else {
            return Ok(Self::Bytes(text.parse()?));
        };
        let wrong = || SizeError::Share(text.to_owned());
        let (whole, fraction) = share.split_once('.').unwrap_or((share, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 2 {
            return Err(wrong());
        }
        let hundredths: u32 = format!("{fraction:0<2}").parse().map_err(|_| wrong())?;
        let whole: u32 = whole.parse().map_err(|_| wrong())?;
        let share = whole
            .checked_mul(100)
            .and_then(|w| w.checked_add(hundredths));
        match share {
            Some(share) if (1..=MAX_SHARE).contains(&share) => Ok(Self::Share(share)),
            _ => Err(wrong()),
        }
    }
}

text_form!(Size);

/// A limit of a memory cgroup: a size, or no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// No limit, written as `max`.
    #[default]
    Max,
    /// A limit of this size.
    Size(Size),
}

impl Limit {
    /// Returns true if there is no limit.
    pub fn is_max(&self) -> bool {
        *self == Self::Max
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Size(size) => size.fmt(f),
        }
    }
}

impl FromStr for Limit {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        if text.trim() == "max" {
            return Ok(Self::Max);
        }
        text.parse().map(Self::Size)
    }
}

text_form!(Limit);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_follows_memory_and_bytes_do_not() {
        let memory = Bytes::from_mib(16);
        assert_eq!(
            "50%".parse::<Size>().map(|s| s.of(memory)),
            Ok(Bytes::from_mib(8))
        );
        assert_eq!(
            "2M".parse::<Size>().map(|s| s.of(memory)),
            Ok(Bytes::from_mib(2))
        );
        assert_eq!(
            "12.5%".parse::<Size>().map(|s| s.of(memory)),
            Ok(Bytes::from_mib(2))
        );
        assert_eq!(
            "0.01%".parse::<Size>().map(|s| s.of(memory)),
            Ok(Bytes(4096))
        );
        for text in ["0%", "-1%", "1001%", "1.234%", "%", ".5%", "1e2%", "5.%"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_as_people_write_them() {
        for text in ["80%", "12.5%", "0.07%", "64K", "8M", "4097", "150%"] {
            assert_eq!(
                text.parse::<Size>().map(|s| s.to_string()),
                Ok(text.to_owned())
            );
        }
        assert_eq!("max".parse::<Limit>(), Ok(Limit::Max));
        let zero = Limit::Size(Size::Bytes(Bytes(0)));
        assert_eq!("0".parse(), Ok(zero));
        assert_eq!(Size::Bytes(Bytes(0)).limit_of(Bytes(5)), Bytes(0));
    }
}
