//! Output of `damo report access --raw_form`: snapshots of DAMON's regions with the number of sampled accesses.
//!
//! A region is `START-END (SIZE) ACCESSES AGE`, in older versions `START-END(SIZE): ACCESSES`, with hexadecimal
//! addresses. A line `nr_regions:` before the regions has their number, and `target_id:` the process that the addresses
//! belong to. DAMON checks one page of a region and assumes that the others behave in the same way. So a region with
//! accesses counts as one reference to each of its pages per snapshot, and a region without accesses as none. The order
//! of references within a snapshot, and the number of uses of a page in it, are not known.
//!
//! Source: `pr_records_raw_form` in `src/damo_report_access.py` and USAGE.md of <https://github.com/damonitor/damo>,
//! and the kernel's `Documentation/mm/damon/design.rst`.

use std::io::BufRead;

use super::head::Head;
use super::lines::{decimal, hex, lines, words};
use super::sink::{Refusal, Sink, Take};
use super::spaces::Spaces;
use crate::error::ReferenceErrorKind;

/// First line of a report: how it begins.
const FIRST: &[u8] = b"base_time_absolute:";
/// How other lines begin that do not describe a region.
const OTHERS: [&[u8]; 6] = [
    FIRST,
    b"data source:",
    b"monitoring_start:",
    b"monitoring_end:",
    b"monitoring_duration:",
    b"#",
];
const EXPECTED: &str = "line of damo report access --raw_form";

pub(super) fn begins(head: &Head<'_>) -> bool {
    head.is_text && head.first.starts_with(FIRST)
}

/// Reads the pages of all regions with accesses.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    let mut report = Report::default();
    lines(input, take, |line, sink| report.line(line, sink))?;
    report.snapshot_is_whole()
}

#[derive(Default)]
struct Report {
    targets: Spaces,
    /// Number of the target process to which the following regions belong.
    target: u64,
    /// Number of regions announced by the last `nr_regions:` line.
    promised: u64,
    /// Number of regions found after the last `nr_regions:` line.
    found: u64,
}

impl Report {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        if let Some(name) = line.strip_prefix(b"target_id:") {
            self.target = self.targets.number(name.trim_ascii())?;
            return Ok(());
        }
        if let Some(count) = line.strip_prefix(b"nr_regions:") {
            self.snapshot_is_whole().map_err(Refusal::Whole)?;
            self.promised = decimal(count.trim_ascii()).ok_or(EXPECTED)?;
            self.found = 0;
            return Ok(());
        }
        if OTHERS.iter().any(|other| line.starts_with(other)) {
            return Ok(());
        }
        let (start, end, accesses) = region(line).ok_or(EXPECTED)?;
        self.found += 1;
        if accesses == 0 || start == end {
            return Ok(());
        }
        sink.range(self.target, start, end - start, false)
    }

    fn snapshot_is_whole(&self) -> Result<(), ReferenceErrorKind> {
        if self.promised == self.found {
            return Ok(());
        }
        Err(ReferenceErrorKind::Count {
            what: "nr_regions of a snapshot",
            promised: self.promised,
            found: self.found,
        })
    }
}

/// Parses a region and returns its start, end and number of accesses; `None` if the line is not a region.
fn region(line: &[u8]) -> Option<(u64, u64, u64)> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().position(|byte| *byte == b')')?;
    let (range, rest) = (line[..open].trim_ascii(), line.get(close + 1..)?);
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let (start, end) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
    let mut counts = words(rest.strip_prefix(b":").unwrap_or(rest));
    let accesses = decimal(counts.next()?)?;
    let age = counts.next().unwrap_or(b"0");
    decimal(age.strip_prefix(b"-").unwrap_or(age))?;
    (open < close && start <= end && counts.next().is_none()).then_some((start, end, accesses))
}
