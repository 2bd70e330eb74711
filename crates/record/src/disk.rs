//! A rotating disk for swap or files, and the time that its requests take.

use std::fmt;
use std::str::FromStr;

use pagetide_quantity::{Nanos, UnitError};

use crate::text::{exact_time, serde_as_text};

/// A rotating disk that serves one request at a time. A request takes its transfer time, plus a seek unless the request
/// begins where the previous one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DiskSpec {
    /// Time of a seek, including rotational latency.
    pub seek: Nanos,
    /// Transfer rate in bytes per second.
    pub rate: u64,
}

impl Default for DiskSpec {
    /// Returns the default disk: a seek takes 8 ms, the transfer rate is 40 MB/s.
    fn default() -> Self {
        Self {
            seek: Nanos::from_millis(8),
            rate: 40_000_000,
        }
    }
}

impl DiskSpec {
    /// Returns the time that a request of `length` bytes takes. `continues` is true if the request begins where the
    /// previous one ended.
    pub fn cost(self, length: u64, continues: bool) -> Nanos {
        let seek = if continues { 0 } else { self.seek.0 };
        let transfer = u128::from(length) * 1_000_000_000 / u128::from(self.rate.max(1));
        Nanos(seek.saturating_add(u64::try_from(transfer).unwrap_or(u64::MAX)))
    }

    /// Parses the text after the word `disk`: nothing, `:SEEK`, `:SEEK,RATE` or `,RATE`.
    fn after_word(rest: &str) -> Result<Self, DiskError> {
        let mut spec = Self::default();
        let (seek, rate) = match rest.split_once(',') {
            Some((seek, rate)) => (seek, Some(rate)),
            None => (rest, None),
        };
        if let Some(text) = seek.strip_prefix(':') {
            spec.seek = text.parse()?;
        } else if !seek.is_empty() {
            return Err(DiskError::Form);
        }
        if let Some(text) = rate {
            spec.rate = bytes_a_second(text)?;
        }
        Ok(spec)
    }
}

/// Units of a rate, largest first.
const RATES: [(&str, u64); 4] = [
    ("GB/s", 1_000_000_000),
    ("MB/s", 1_000_000),
    ("kB/s", 1_000),
    ("B/s", 1),
];

fn bytes_a_second(text: &str) -> Result<u64, DiskError> {
    let text = text.trim();
    let wrong = || DiskError::Rate(text.to_owned());
    let (digits, scale) = RATES
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
        .ok_or_else(wrong)?;
    let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
    match number.checked_mul(scale) {
        Some(rate) if rate > 0 => Ok(rate),
        _ => Err(wrong()),
    }
}

impl fmt::Display for DiskSpec {
    /// Formats the disk exactly, in the largest units that divide the values: `disk:8ms,40MB/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = RATES
            .into_iter()
            .find(|(_, scale)| self.rate.is_multiple_of(*scale))
            .unwrap_or(("B/s", 1));
        let text = format!("disk:{},{}{unit}", exact_time(self.seek), self.rate / scale);
        f.pad(&text)
    }
}

/// Why a text does not describe a rotating disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// The text has none of the forms `disk`, `disk:SEEK`, `disk,RATE` and `disk:SEEK,RATE`.
    #[error("write a disk as disk, disk:SEEK or disk:SEEK,RATE, such as disk:8ms,40MB/s")]
    Form,
    /// The seek time is not a time.
    #[error(transparent)]
    Seek(#[from] UnitError),
    /// The transfer rate is not a rate.
    #[error("`{0}` is not a rate of a disk: give bytes per second, such as 40MB/s or 500kB/s")]
    Rate(String),
}

impl FromStr for DiskSpec {
    type Err = DiskError;

    fn from_str(text: &str) -> Result<Self, DiskError> {
        Self::after_word(text.strip_prefix("disk").ok_or(DiskError::Form)?)
    }
}

serde_as_text!(DiskSpec);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_survives_its_text_form() {
        let shown = |text: &str| text.parse::<DiskSpec>().unwrap().to_string();
        assert_eq!(shown("disk"), "disk:8ms,40MB/s");
        assert_eq!(shown("disk:4ms"), "disk:4ms,40MB/s");
        assert_eq!(shown("disk,20MB/s"), "disk:8ms,20MB/s");
        for text in [
            "disk:8ms,40MB/s",
            "disk:8500us,125MB/s",
            "disk:0ns,1B/s",
            "disk:1s,1500kB/s",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn what_is_no_disk_is_refused_with_an_example() {
        for text in [
            "disk8ms",
            "disc",
            "disk:8",
            "disk:8ms,40",
            "disk:8ms,0MB/s",
            "disk:,40MB/s",
        ] {
            assert!(text.parse::<DiskSpec>().is_err(), "{text}");
        }
        let why = "disk:8ms,fast".parse::<DiskSpec>().unwrap_err().to_string();
        assert!(why.contains("fast") && why.contains("40MB/s"), "{why}");
    }

    #[test]
    fn a_request_costs_a_seek_unless_it_continues_and_then_its_bytes() {
        let disk = DiskSpec::default();
        assert_eq!(disk.cost(4096, true), Nanos(102_400));
        assert_eq!(disk.cost(4096, false), Nanos(8_102_400));
        assert_eq!(disk.cost(40_000_000, true), Nanos::from_secs(1));
        assert_eq!(disk.cost(0, false), Nanos::from_millis(8));
    }
}
