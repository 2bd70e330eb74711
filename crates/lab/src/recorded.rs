//! References that the profiled pass of a trial recorded, as a string for the oracle.

use pagetide_oracle::{ReferenceErrorKind, ReferenceString, Take};
use pagetide_profile::{Header, Kind, REFERENCES, Recorded, RecordedError};
use pagetide_record::{FileError, RecordReader};
use thiserror::Error;

/// Why recorded references cannot be used.
#[derive(Debug, Error)]
pub enum RecordedStringError {
    /// The record's section cannot be read.
    #[error(transparent)]
    Section(#[from] FileError),
    /// The stored references cannot be read.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// The references do not fit into memory.
    #[error("the recorded references cannot be used: {0}")]
    Many(#[from] ReferenceErrorKind),
}

/// Number of references passed on at a time.
const PIECE: usize = 1 << 14;
/// Number of runs of references after which the page of the executed code is repeated in the string. The record names a
/// page of code only when its execution starts, although it is used all the time. With this repetition, LRU with more
/// pages than this does not evict it meanwhile.
const AGAIN: u32 = 16;

/// Collects page IDs and passes them on in pieces.
struct Sink<'a> {
    ids: Vec<u64>,
    writes: Vec<bool>,
    take: Take<'a>,
    last: Option<(u64, bool)>,
    /// The page of the executed code, and the number of runs of references since it was passed on.
    code: Option<(u64, u32)>,
}

impl Sink<'_> {
    /// Adds a reference, unless it is to the same page as the last one. A write to a page that was only read is added
    /// too.
    fn add(&mut self, id: u64, writes: bool) {
        if self
            .last
            .is_some_and(|(last, wrote)| last == id && (wrote || !writes))
        {
            return;
        }
        self.last = Some((id, writes));
        self.ids.push(id);
        self.writes.push(writes);
    }

    fn run(&mut self, id: u64, kind: Kind) -> Result<(), RecordedStringError> {
        self.add(id, kind.writes());
        if kind == Kind::Fetch {
            self.code = Some((id, 0));
        } else if let Some((code, since)) = &mut self.code {
            *since += 1;
            if *since == AGAIN {
                *since = 0;
                let code = *code;
                self.add(code, false);
            }
        }
        if self.ids.len() >= PIECE {
            self.hand_on()?;
        }
        Ok(())
    }

    fn hand_on(&mut self) -> Result<(), RecordedStringError> {
        (self.take)(&self.ids, &self.writes)?;
        self.ids.clear();
        self.writes.clear();
        Ok(())
    }
}

/// Reads the recorded references of a record. Returns them as a string of pages in which repeated references to a page
/// are one, and the header of the recording. For `most` and `writes` see [`ReferenceString::gather`].
pub(crate) fn string(
    record: &RecordReader,
    most: u64,
    writes: bool,
) -> Result<(ReferenceString, Header), RecordedStringError> {
    let mut recorded = Recorded::new(record.blob(REFERENCES)?)?;
    let header = *recorded.header();
    let string = ReferenceString::gather(most, writes, |take| {
        let mut sink = Sink {
            ids: Vec::with_capacity(PIECE + 2),
            writes: Vec::with_capacity(PIECE + 2),
            take,
            last: None,
            code: None,
        };
        while let Some(run) = recorded.next_run()? {
            sink.run(run.id(), run.kind)?;
        }
        sink.hand_on()
    })?;
    Ok((string, header))
}

/// Returns a sentence for the user on what the reference string contains.
pub(crate) fn sentence(header: &Header) -> String {
    let cut = if header.is_cut() {
        let share = 100 * header.until / header.instructions.max(1);
        format!(" The record was cut at its largest size: it has {share} % of the time.")
    } else {
        String::new()
    };
    format!(
        "Recorded in the trial: {} references of programs and of the kernel for them; those that repeat the last page are one.{cut}",
        header.recorded
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_one_reference_and_code_stays_in_use() {
        let mut all = Vec::new();
        let mut take = |ids: &[u64], writes: &[bool]| {
            all.extend(ids.iter().copied().zip(writes.iter().copied()));
            Ok(())
        };
        let mut sink = Sink {
            ids: Vec::new(),
            writes: Vec::new(),
            take: &mut take,
            last: None,
            code: None,
        };
        sink.run(1, Kind::Fetch).unwrap();
        for (id, kind) in [
            (5, Kind::Read),
            (5, Kind::KernelRead),
            (5, Kind::Write),
            (5, Kind::Read),
        ] {
            sink.run(id, kind).unwrap();
        }
        for id in 10..22 {
            sink.run(id, Kind::Read).unwrap();
        }
        sink.run(30, Kind::Read).unwrap();
        sink.hand_on().unwrap();
        let ids: Vec<u64> = all.iter().map(|(id, _)| *id).collect();
        let expected = [
            1, 5, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 1, 30,
        ];
        assert_eq!(ids, expected);
        assert!(all[2].1 && all.iter().filter(|(_, writes)| *writes).count() == 1);
    }
}
