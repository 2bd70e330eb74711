//! A reference string with dense page numbers, kept in memory or, if it is long, in a temporary file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use pagetide_reference::References;

use crate::error::{ReferenceError, ReferenceErrorKind};
use crate::ingest::{self, Dense, Format, RequiredContent, Take};
use crate::memory::memory_at_hand;
use crate::number::{at, low32};
use crate::writes::{Bits, Writes};

/// Number of references read from the temporary file at a time.
const BLOCK_REFERENCES: usize = 1 << 20;

/// Storage of the references.
#[derive(Debug)]
enum Storage {
    Memory(Vec<u32>),
    /// A temporary file without a name, with 4 bytes per reference.
    Disk(File),
}

/// A reference string. Pages are numbered from 0 with few or no gaps.
#[derive(Debug)]
pub struct ReferenceString {
    place: Storage,
    references: u64,
    pages: u32,
    distinct: u32,
    /// Number of references at the beginning that only fill memory. Each of them is to a different page.
    lead: u32,
    /// Which references are writes; `None` if unknown.
    writes: Option<Writes>,
}

impl ReferenceString {
    /// Creates a string from page numbers, all of which must be below `pages`.
    pub fn of(references: Vec<u32>, pages: u32) -> Self {
        let mut seen = vec![false; at(pages)];
        let mut distinct = 0;
        for &page in &references {
            distinct += u32::from(!std::mem::replace(&mut seen[at(page)], true));
        }
        Self {
            references: references.len() as u64,
            place: Storage::Memory(references),
            pages,
            distinct,
            lead: 0,
            writes: None,
        }
    }

    /// Creates a string of two parts: one reference to each page below `lead`, in ascending order, followed by the
    /// references of a pattern over `pages` pages.
    ///
    /// The first `lead` references fill memory, as scenarios do before their first reference. Their faults are not
    /// counted.
    pub fn after_fill(lead: u32, mut references: References<'_>, pages: u32) -> Self {
        let mut all: Vec<u32> = (0..lead).collect();
        all.resize(
            all.len() + usize::try_from(references.left()).unwrap_or(0),
            0,
        );
        references.fill(&mut all[at(lead)..]);
        Self {
            lead,
            ..Self::of(all, pages)
        }
    }

    /// Reads a reference file of pagetide without renumbering its pages. The page numbers must be below `pages`. The
    /// string begins with `lead` references that fill memory: see [`after_fill`](Self::after_fill). See
    /// [`read`](Self::read) for `most`.
    pub fn read_pages(
        path: &Path,
        pages: u32,
        lead: u32,
        most: u64,
    ) -> Result<Self, ReferenceError> {
        let trouble = |reason| ReferenceError {
            path: path.to_owned(),
            reason,
        };
        let mut writer = Writer::new(most);
        let mut seen = vec![false; at(pages.max(lead))];
        let mut distinct = 0;
        let mut count = |block: &[u32]| {
            for &page in block {
                distinct += u32::from(!std::mem::replace(&mut seen[at(page)], true));
            }
        };
        let mut read = |writer: &mut Writer| -> Result<(), ReferenceErrorKind> {
            let fill: Vec<u32> = (0..lead).collect();
            count(&fill);
            writer.take(&fill)?;
            let mut reader =
                pagetide_reference::open_file(path, pages).map_err(|error| error.reason)?;
            let mut block = vec![0; 1 << 14];
            loop {
                let filled = reader.fill(&mut block)?;
                count(&block[..filled]);
                writer.take(&block[..filled])?;
                if filled < block.len() {
                    return Ok(());
                }
            }
        };
        read(&mut writer).map_err(trouble)?;
        let string = writer.finish(pages).map_err(trouble)?;
        Ok(Self {
            distinct,
            lead,
            ..string
        })
    }

    /// Reads a file of any known format, compressed or not. If `format` is `None`, it is detected from the contents.
    ///
    /// Pages are renumbered from 0 in order of first use. If there are more than `most` references, they are kept in a
    /// temporary file without a name instead of in memory.
    pub fn read(path: &Path, format: Option<Format>, most: u64) -> Result<Self, ReferenceError> {
        Self::read_telling(path, format, most, RequiredContent::Pages)
    }

    /// Does the same as [`read`](Self::read), and also keeps which references are writes in memory, one bit per
    /// reference. Fails if the format does not contain this.
    pub fn read_with_writes(
        path: &Path,
        format: Option<Format>,
        most: u64,
    ) -> Result<Self, ReferenceError> {
        Self::read_telling(path, format, most, RequiredContent::Writes)
    }

    fn read_telling(
        path: &Path,
        format: Option<Format>,
        most: u64,
        told: RequiredContent,
    ) -> Result<Self, ReferenceError> {
        let writes = told == RequiredContent::Writes;
        let read = |take: Take<'_>| ingest::each(path, format, told, take);
        Self::gather(most, writes, read).map_err(|reason| ReferenceError {
            path: path.to_owned(),
            reason,
        })
    }

    /// Creates a string from the IDs that `read` passes to its argument in pieces. If `writes` is true, also keeps
    /// which references are writes in memory, one bit each. See [`read`](Self::read) for page numbers and `most`.
    pub fn gather<E: From<ReferenceErrorKind>>(
        most: u64,
        writes: bool,
        read: impl FnOnce(Take<'_>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut writer = Writer::new(most);
        let mut bits = Bits::default();
        let memory = memory_at_hand() / 4;
        // The other half of the memory is for the references.
        let mut dense = Dense::within(memory_at_hand() / 2);
        let mut numbers = Vec::new();
        read(&mut |ids, writing| {
            numbers.clear();
            dense.number(ids, &mut numbers)?;
            writer.take(&numbers)?;
            if writes {
                for &write in writing {
                    bits.push(write);
                }
                if bits.bytes() > memory {
                    let references = writer.references;
                    return Err(ReferenceErrorKind::TooManyWrites { references, memory });
                }
            }
            Ok(())
        })?;
        let string = writer.finish(dense.pages())?;
        Ok(Self {
            writes: writes.then(|| bits.finish()),
            ..string
        })
    }

    /// Returns the same string, with `writes` stating which references are writes.
    #[must_use]
    pub fn with_writes(self, writes: Option<Writes>) -> Self {
        Self { writes, ..self }
    }

    /// Returns which references are writes; `None` if unknown.
    pub fn writes(&self) -> Option<&Writes> {
        self.writes.as_ref()
    }

    /// Returns the number of references, including those that only fill memory.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Returns the number of references at the beginning that only fill memory. Their faults are not counted.
    pub fn lead(&self) -> u32 {
        self.lead
    }

    /// Returns the upper limit of the page numbers: all are below it.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Returns the number of distinct pages.
    pub fn distinct(&self) -> u32 {
        self.distinct
    }

    /// Returns all references, or `None` if they are in a temporary file.
    pub fn in_memory(&self) -> Option<&[u32]> {
        match &self.place {
            Storage::Memory(references) => Some(references),
            Storage::Disk(_) => None,
        }
    }

    /// Calls `take` with the references `first..last` in order, in one or more pieces.
    pub fn each(&self, first: u64, last: u64, mut take: impl FnMut(&[u32])) -> io::Result<()> {
        match &self.place {
            Storage::Memory(references) => {
                let range = usize::try_from(first).unwrap_or(0)..usize::try_from(last).unwrap_or(0);
                take(&references[range]);
            }
            Storage::Disk(file) => {
                let mut bytes = vec![0; BLOCK_REFERENCES * 4];
                let mut block = Vec::with_capacity(BLOCK_REFERENCES);
                let mut from = first;
                while from < last {
                    let length = at(low32((last - from).min(BLOCK_REFERENCES as u64)));
                    file.read_exact_at(&mut bytes[..length * 4], from * 4)?;
                    block.clear();
                    block.extend(
                        bytes[..length * 4]
                            .as_chunks()
                            .0
                            .iter()
                            .map(|&four| u32::from_le_bytes(four)),
                    );
                    take(&block);
                    from += length as u64;
                }
            }
        }
        Ok(())
    }
}

/// Collects page numbers of references, in memory up to a limit, then in a temporary file.
struct Writer {
    memory: Vec<u32>,
    disk: Option<File>,
    references: u64,
    most: u64,
}

impl Writer {
    fn new(most: u64) -> Self {
        Self {
            memory: Vec::new(),
            disk: None,
            references: 0,
            most,
        }
    }

    fn take(&mut self, dense: &[u32]) -> Result<(), ReferenceErrorKind> {
        self.references += dense.len() as u64;
        if self.references > crate::MAX_REFERENCES {
            return Err(ReferenceErrorKind::TooLong);
        }
        self.memory.extend_from_slice(dense);
        if self.references > self.most
            && (self.disk.is_none() || self.memory.len() >= BLOCK_REFERENCES)
        {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.disk {
            Some(file) => file,
            none => none.insert(nameless_file()?),
        };
        for block in self.memory.chunks(BLOCK_REFERENCES) {
            let bytes: Vec<u8> = block.iter().flat_map(|page| page.to_le_bytes()).collect();
            file.write_all(&bytes)?;
        }
        self.memory = Vec::new();
        Ok(())
    }

    fn finish(mut self, distinct: u32) -> Result<ReferenceString, ReferenceErrorKind> {
        if self.references == 0 {
            return Err(ReferenceErrorKind::Empty);
        }
        if self.disk.is_some() {
            self.spill()?;
        }
        Ok(ReferenceString {
            place: match self.disk {
                Some(file) => Storage::Disk(file),
                None => Storage::Memory(self.memory),
            },
            references: self.references,
            pages: distinct,
            distinct,
            lead: 0,
            writes: None,
        })
    }
}

/// Creates a temporary file without a name. It is deleted when it is closed.
fn nameless_file() -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let folder = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = open(&folder, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
        io::Error::other(format!(
            "no temporary file in {}: {error}",
            folder.display()
        ))
    })?;
    Ok(File::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_range_without_a_reference_are_not_distinct_pages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("references");
        std::fs::write(&path, "7\n3\n7\n").unwrap();
        let string = |lead| ReferenceString::read_pages(&path, 10, lead, 100).unwrap();
        assert_eq!((string(0).pages(), string(0).distinct()), (10, 2));
        assert_eq!((string(4).pages(), string(4).distinct()), (10, 5));
    }
}
