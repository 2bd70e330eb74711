//! Pressure stall information: `/proc/pressure/*` and a cgroup's `memory.pressure` (Documentation/accounting/psi.rst).

use serde::{Deserialize, Serialize};

use super::file::Parse;
use super::scan;

/// One line of pressure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PsiLine {
    /// Share of time stalled over 10 s, in hundredths of a percent.
    pub avg10: u64,
    /// Share of time stalled over 60 s, in hundredths of a percent.
    pub avg60: u64,
    /// Share of time stalled over 300 s, in hundredths of a percent.
    pub avg300: u64,
    /// All time stalled since boot, in microseconds.
    pub total_us: u64,
}

/// Pressure on one resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Psi {
    /// At least one task waited; `None` where the kernel prints no such line.
    pub some: Option<PsiLine>,
    /// All tasks that could have run waited; `None` for cpu pressure on kernels before 5.13.
    pub full: Option<PsiLine>,
}

impl Parse for Psi {
    fn parse(&mut self, text: &[u8]) {
        *self = Self::default();
        for line in scan::lines(text) {
            let mut words = scan::words(line);
            let kind = words.next();
            let Some(read) = psi_line(words) else {
                continue;
            };
            match kind {
                Some(b"some") => self.some = Some(read),
                Some(b"full") => self.full = Some(read),
                _ => {}
            }
        }
    }
}

fn psi_line<'a>(words: impl Iterator<Item = &'a [u8]>) -> Option<PsiLine> {
    let mut line = PsiLine::default();
    let mut total = None;
    for word in words {
        let (key, value) = scan::split_once(word, b'=')?;
        match key {
            b"avg10" => line.avg10 = scan::hundredths(value)?,
            b"avg60" => line.avg60 = scan::hundredths(value)?,
            b"avg300" => line.avg300 = scan::hundredths(value)?,
            b"total" => total = Some(scan::number(value)?),
            _ => {}
        }
    }
    line.total_us = total?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_and_full_are_read_in_microseconds() {
        let mut psi = Psi::default();
        psi.parse(b"some avg10=1.25 avg60=0.50 avg300=0.01 total=1000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=400\n");
        assert_eq!(psi.some.unwrap().avg10, 125);
        assert_eq!(psi.full.unwrap().total_us, 400);
    }

    #[test]
    fn a_line_cut_short_is_absent_and_not_zero() {
        let mut psi = Psi::default();
        psi.parse(b"some avg10=0.00 avg60=0.00 avg300=0.0");
        assert_eq!(psi.some, None);
        assert_eq!(psi.full, None);
    }
}
