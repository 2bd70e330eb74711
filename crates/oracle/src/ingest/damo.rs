//! What `damo report access --raw_form` prints: snapshots of DAMON's regions, each with the accesses that were sampled.
//!
//! A region is `START-END (SIZE) ACCESSES AGE`, older `START-END(SIZE): ACCESSES`, with hexadecimal addresses.
//! `nr_regions:` before them says how many follow, `target_id:` whose addresses they are. DAMON looks at one page of a
//! region and takes the others to be like it. So a region with accesses is a reference to each of its pages, once a
//! snapshot, and a region without is none: the order within a snapshot, and how often a page was used in it, is not
//! known.
//!
//! Source: `pr_records_raw_form` in `src/damo_report_access.py` and USAGE.md of <https://github.com/damonitor/damo>,
//! and the kernel's `Documentation/mm/damon/design.rst`.

use std::io::BufRead;

use super::lines::{decimal, hex, lines, words};
use super::sink::{Refusal, Sink, Take};
use super::spaces::Spaces;
use super::tell::Head;
use crate::error::Trouble;

/// What the first line of a report begins with.
const FIRST: &[u8] = b"base_time_absolute:";
/// What other lines without a region begin with.
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

/// Reads the pages of regions with accesses.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), Trouble> {
    let mut report = Report::default();
    lines(input, take, |line, sink| report.line(line, sink))?;
    report.snapshot_is_whole()
}

#[derive(Default)]
struct Report {
    targets: Spaces,
    /// Number of the target whose regions follow.
    target: u64,
    /// Regions that the last `nr_regions:` promised, and those that came.
    promised: u64,
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

    fn snapshot_is_whole(&self) -> Result<(), Trouble> {
        if self.promised == self.found {
            return Ok(());
        }
        Err(Trouble::Count {
            what: "nr_regions of a snapshot",
            promised: self.promised,
            found: self.found,
        })
    }
}

/// Start, end and accesses of a region.
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
