//! References to pages, as the emulator's plugin recorded them in a profiled pass.
//!
//! A reference is an access to a page of a program's memory: by the program, or by the kernel for it. The stored form
//! is a header of 16 numbers, then codes:
//!
//! | code | meaning |
//! |---|---|
//! | `00`…`7f` | the reference in this slot of a table of 128 recent references |
//! | `80`…`bf` | the reference before is repeated: 1 to 63 times, or for `bf` 64 times and as often as the number that follows |
//! | `c0`…`c4` | another reference of this kind; the distance in pages to the last such one of its kind follows |
//! | `f0` | another task: its number and the number of its address space follow |
//! | `f1` | instructions since the last such code follow |
//! | `f2` | what the kernel did with a page: the kind of event, the address space and the page follow |
//! | `f3` | a mapping of an address space: the space, the first page, the number of pages, the page of the file with which it begins, and size and bytes of its name follow |
//! | `f4` | pages in memory in which DAMON saw accesses: the space, the first page and the number of pages follow |
//! | `f5` | DAMON has added up: the number of all its regions follows |
//!
//! Numbers are in LEB128, distances in zigzag form. A reference of the codes `c0`…`c4` replaces the one in its slot. So
//! a sequential pattern takes four bytes for each page, however often it accesses the page, and a loop over a few pages
//! one byte for each change of the page.

mod damon;
mod form;
mod mapping;
mod paging;
mod summary;

use std::io::{BufRead, BufReader, Read};

use form::{
    AT_BYTES, AT_COUNTS, AT_CUT, AT_END, AT_OWN, AT_RECORDED, AT_TOLD, AT_UNKNOWN, AT_WORKLOAD,
    EVENT, EVENTS, HEADER_NUMBERS, KINDS, MAGIC, MAPPING, MAX_NAME, NEW, REGION, REGIONS, REPEAT,
    REPEAT_MASK, SLOTS, TASK, TIME, key, of_key, slot_of,
};
use serde::Serialize;

pub use damon::Damon;
pub use mapping::Mapping;
pub use paging::{Checks, Evictions, PageFaults, PageRow, Paging, ReadAhead};
pub use summary::{AddressRange, Summary, TaskReferences, Window};

/// Name of the blob with the references in the record of a profiled pass.
pub const REFERENCES: &str = "references";
/// Maximum number of address spaces, so that a space and a page number fit in one number of 64 bits.
const MAX_SPACES: u32 = 1 << 19;
/// Number of bits of a page number. Addresses of programs have at most 57 bits, of which 12 are within the page.
const PAGE_BITS: u32 = 45;

/// Why recorded references cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// The stored bytes cannot be read.
    #[error("reading recorded references stopped: {0}")]
    Read(#[from] std::io::Error),
    /// The stored bytes are not recorded references.
    #[error("the recorded references contradict themselves ({0}): the record is damaged")]
    Damaged(&'static str),
}

/// What a reference does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Kind {
    /// A program reads.
    Read = form::READ,
    /// A program writes.
    Write = form::WRITE,
    /// A program executes code of a page after code of another page.
    Fetch = form::FETCH,
    /// The kernel reads the memory of a program.
    KernelRead = form::KERNEL_READ,
    /// The kernel writes the memory of a program.
    KernelWrite = form::KERNEL_WRITE,
}

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; KINDS] = [
        Self::Read,
        Self::Write,
        Self::Fetch,
        Self::KernelRead,
        Self::KernelWrite,
    ];

    /// True if the reference writes to the page.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::KernelWrite)
    }

    /// Returns the name for users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Fetch => "fetch",
            Self::KernelRead => "kernel read",
            Self::KernelWrite => "kernel write",
        }
    }
}

/// Consecutive references of one task to one page that are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the page: its virtual address divided by 4096.
    pub page: u64,
    /// Number of the address space; threads share one, and a program that is executed gets a new one.
    pub space: u32,
    /// Number of the task.
    pub task: u32,
    /// What the references do.
    pub kind: Kind,
    /// Number of references, at least 1.
    pub times: u64,
    /// Number of instructions of all tasks since the start of the scenario, which is exact time in nanoseconds. Up to
    /// 1024 below the true number.
    pub at: u64,
}

impl Run {
    /// Returns the number that identifies the page among all pages of all address spaces.
    pub const fn id(&self) -> u64 {
        (self.space as u64) << PAGE_BITS | self.page
    }
}

/// What the kernel did with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum EventKind {
    /// Reclaim removed the page from its address space.
    Evicted = form::EVICTED,
    /// A page fault found the page's contents in memory.
    FaultFound = form::FAULT_FOUND,
    /// A page fault read the page's contents from a device.
    FaultRead = form::FAULT_READ,
    /// The page began to be read from swap, by read-ahead or for a page fault.
    SwappedIn = form::SWAPPED_IN,
    /// The kernel checked the page's accessed bit, which was not set.
    Old = form::OLD,
    /// The kernel checked the page's accessed bit, which was set, and cleared it.
    Young = form::YOUNG,
}

impl EventKind {
    /// All kinds, in the order of their codes.
    const ALL: [Self; EVENTS] = [
        Self::Evicted,
        Self::FaultFound,
        Self::FaultRead,
        Self::SwappedIn,
        Self::Old,
        Self::Young,
    ];
}

/// What the kernel did with a page, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEvent {
    /// What the kernel did.
    pub kind: EventKind,
    /// Number of the address space.
    pub space: u32,
    /// Number of the page.
    pub page: u64,
    /// Instructions since the start of the scenario, as in [`Run::at`].
    pub at: u64,
}

impl PageEvent {
    /// Number that identifies the page, as [`Run::id`].
    pub const fn id(&self) -> u64 {
        (self.space as u64) << PAGE_BITS | self.page
    }
}

/// A part of recorded references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// References to a page.
    Run(Run),
    /// Something that the kernel did with a page.
    Event(PageEvent),
    /// Pages in memory in which DAMON saw accesses.
    Region(Region),
    /// DAMON has added up the accesses; the pages stand before.
    Regions {
        /// Number of all regions.
        count: u64,
        /// Instructions since the start of the scenario.
        at: u64,
    },
}

/// Pages of an address space that are in memory in which DAMON, the kernel's monitor of accesses, saw accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Number of the address space.
    pub space: u32,
    /// Number of the first page.
    pub first: u64,
    /// Number of pages.
    pub pages: u64,
}

/// Address space and page of a page's [`Run::id`].
#[allow(
    clippy::cast_possible_truncation,
    reason = "the upper bits of an id are a space's number"
)]
const fn parts(id: u64) -> (u32, u64) {
    ((id >> PAGE_BITS) as u32, id & ((1 << PAGE_BITS) - 1))
}

/// Header of recorded references: totals of the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Header {
    /// Instructions from the start of the scenario to its end.
    pub instructions: u64,
    /// Instructions from the start of the scenario to the last recorded reference. Less than `instructions` if the
    /// record reached its maximum size and was cut.
    pub until: u64,
    /// Number of recorded references.
    pub recorded: u64,
    /// Number of references of each kind, including those that were cut.
    pub counts: [u64; KINDS],
    /// Number of accesses of the kernel to its own memory. They are not recorded.
    pub kernel_own: u64,
    /// Number of the task that ran the scenario.
    pub workload: u32,
    /// Size of the codes in bytes.
    pub bytes: u64,
    /// Number of evictions of pages that are not known. They are not recorded.
    pub unknown_evictions: u64,
    /// A bit for each [`EventKind`] that could be recorded on the trial's kernel, at the place of the kind's number. Zero
    /// in records of earlier versions.
    pub told: u64,
}

impl Header {
    /// Returns the number of references, including those that were cut.
    pub fn references(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// True if events of this kind were recorded.
    pub const fn tells(&self, kind: EventKind) -> bool {
        self.told >> kind as u8 & 1 != 0
    }

    /// True if the last references are missing, because the record reached its largest size.
    pub const fn is_cut(&self) -> bool {
        self.until < self.instructions
    }

    /// Parses the numbers of a header; fails if they contradict each other.
    fn of(numbers: [u64; HEADER_NUMBERS]) -> Result<Self, RecordedError> {
        if numbers[0] != MAGIC {
            return Err(RecordedError::Damaged("its first bytes"));
        }
        let header = Self {
            instructions: numbers[AT_END],
            until: numbers[AT_CUT],
            recorded: numbers[AT_RECORDED],
            counts: std::array::from_fn(|kind| numbers[AT_COUNTS + kind]),
            kernel_own: numbers[AT_OWN],
            workload: u32::try_from(numbers[AT_WORKLOAD]).unwrap_or(u32::MAX),
            bytes: numbers[AT_BYTES],
            unknown_evictions: numbers[AT_UNKNOWN],
            told: numbers[AT_TOLD],
        };
        let all = header
            .counts
            .iter()
            .try_fold(0_u64, |sum, count| sum.checked_add(*count));
        if all.is_none_or(|all| header.recorded > all) || header.until > header.instructions {
            return Err(RecordedError::Damaged("its numbers of references"));
        }
        Ok(header)
    }
}

/// Reads recorded references one after the other.
pub struct Recorded<R> {
    input: BufReader<R>,
    header: Header,
    slots: [u64; SLOTS],
    /// For each kind, page of the last reference that was in no slot of the table.
    bases: [u64; KINDS],
    /// Kind and page of the last reference.
    last: Option<(u8, u64)>,
    task: u32,
    space: u32,
    at: u64,
    /// Number of references read.
    read: u64,
    mappings: Vec<Mapping>,
}

/// Returns the number of a page. Fails if no page has this number.
const fn known_page(page: u64) -> Result<u64, RecordedError> {
    match page >> PAGE_BITS {
        0 => Ok(page),
        _ => Err(RecordedError::Damaged("a page")),
    }
}

impl<R: Read> Recorded<R> {
    /// Reads the header.
    pub fn new(input: R) -> Result<Self, RecordedError> {
        let mut input = BufReader::with_capacity(1 << 16, input);
        let mut bytes = [0; HEADER_NUMBERS * 8];
        input.read_exact(&mut bytes)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let header = Header::of(std::array::from_fn(|at| u64::from_le_bytes(numbers[at])))?;
        Ok(Self {
            input,
            header,
            slots: [u64::MAX; SLOTS],
            bases: [0; KINDS],
            last: None,
            task: 0,
            space: 0,
            at: 0,
            read: 0,
            mappings: Vec::new(),
        })
    }

    /// Returns the header of the recorded references.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Takes the mappings that were read up to now, in the order in which they were seen.
    pub fn take_mappings(&mut self) -> Vec<Mapping> {
        std::mem::take(&mut self.mappings)
    }

    /// Calls `take` with all runs of references in order. Two consecutive runs may be of the same page and kind. Fails
    /// if the stored bytes contradict themselves.
    pub fn each(mut self, mut take: impl FnMut(Run)) -> Result<Header, RecordedError> {
        while let Some(run) = self.next_run()? {
            take(run);
        }
        Ok(self.header)
    }

    /// Returns the next run; `None` after the last one. Passes over events.
    pub fn next_run(&mut self) -> Result<Option<Run>, RecordedError> {
        loop {
            match self.next_item()? {
                Some(Item::Run(run)) => return Ok(Some(run)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Returns the next run or event; `None` after the last one.
    pub fn next_item(&mut self) -> Result<Option<Item>, RecordedError> {
        loop {
            let Some(code) = self.code()? else {
                if self.read != self.header.recorded {
                    return Err(RecordedError::Damaged("its number of references"));
                }
                return Ok(None);
            };
            match code {
                TASK => {
                    let task = u32::try_from(self.number()?);
                    self.space = self.next_space()?;
                    self.task = task.map_err(|_| RecordedError::Damaged("a task"))?;
                }
                TIME => {
                    self.at = self.at.saturating_add(self.number()?);
                }
                ..REPEAT => {
                    let key = self.slots[usize::from(code)];
                    if key == u64::MAX {
                        return Err(RecordedError::Damaged("an empty slot"));
                    }
                    return self.run(key, 1);
                }
                REPEAT..NEW => {
                    let count = code & REPEAT_MASK;
                    let more = if count == REPEAT_MASK {
                        self.number()?
                    } else {
                        0
                    };
                    let times = more.saturating_add(u64::from(count) + 1);
                    let Some((kind, page)) = self.last else {
                        return Err(RecordedError::Damaged("a repetition of nothing"));
                    };
                    return self.run(key(page, kind), times);
                }
                EVENT => return self.event(),
                MAPPING => self.mapping()?,
                REGION => {
                    return Ok(Some(Item::Region(Region {
                        space: self.next_space()?,
                        first: known_page(self.number()?)?,
                        pages: known_page(self.number()?)?,
                    })));
                }
                REGIONS => {
                    return Ok(Some(Item::Regions {
                        count: self.number()?,
                        at: self.at,
                    }));
                }
                _ => {
                    let kind = code - NEW;
                    let Some(base) = self.bases.get(usize::from(kind)).copied() else {
                        return Err(RecordedError::Damaged("an unknown code"));
                    };
                    let zigzag = self.number()?;
                    let distance = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
                    let page = known_page(base.wrapping_add(distance))?;
                    self.bases[usize::from(kind)] = page;
                    let key = key(page, kind);
                    self.slots[slot_of(key)] = key;
                    return self.run(key, 1);
                }
            }
        }
    }

    /// The run of `times` references with this key.
    fn run(&mut self, key: u64, times: u64) -> Result<Option<Item>, RecordedError> {
        let (page, kind) = of_key(key);
        self.last = Some((kind, page));
        self.read = self.read.saturating_add(times);
        if self.read > self.header.recorded {
            return Err(RecordedError::Damaged("its number of references"));
        }
        let known = Kind::ALL.get(usize::from(kind)).copied();
        Ok(Some(Item::Run(Run {
            page,
            space: self.space,
            task: self.task,
            kind: known.ok_or(RecordedError::Damaged("an unknown kind"))?,
            times,
            at: self.at,
        })))
    }

    /// The event whose numbers come next.
    fn event(&mut self) -> Result<Option<Item>, RecordedError> {
        let kind = self.code()?.ok_or(RecordedError::Damaged("its end"))?;
        let kind = EventKind::ALL.get(usize::from(kind)).copied();
        let space = self.next_space()?;
        let page = known_page(self.number()?)?;
        Ok(Some(Item::Event(PageEvent {
            kind: kind.ok_or(RecordedError::Damaged("an unknown event"))?,
            space,
            page,
            at: self.at,
        })))
    }

    /// Reads the mapping whose numbers come next.
    fn mapping(&mut self) -> Result<(), RecordedError> {
        let space = self.next_space()?;
        let (first, pages) = (known_page(self.number()?)?, known_page(self.number()?)?);
        let (offset, size) = (self.number()?, self.number()?);
        let size = usize::try_from(size).ok().filter(|size| *size <= MAX_NAME);
        let mut name = vec![0; size.ok_or(RecordedError::Damaged("a name"))?];
        self.input.read_exact(&mut name)?;
        self.mappings.push(Mapping {
            space,
            first,
            pages,
            offset,
            name: String::from_utf8_lossy(&name).into_owned(),
        });
        Ok(())
    }

    /// Reads the number of an address space.
    fn next_space(&mut self) -> Result<u32, RecordedError> {
        let space = u32::try_from(self.number()?).ok();
        let space = space.filter(|space| *space < MAX_SPACES);
        space.ok_or(RecordedError::Damaged("an address space"))
    }

    /// Reads the next byte; `None` at the end.
    fn code(&mut self) -> Result<Option<u8>, RecordedError> {
        let first = self.input.fill_buf()?.first().copied();
        self.input.consume(usize::from(first.is_some()));
        Ok(first)
    }

    /// Reads the next number, in LEB128.
    fn number(&mut self) -> Result<u64, RecordedError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.code()?.ok_or(RecordedError::Damaged("its end"))?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(RecordedError::Damaged("a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the stored form of these codes, with a header that announces `recorded` references.
    pub fn stored(recorded: u64, codes: &[u8]) -> Vec<u8> {
        let mut numbers = [0; HEADER_NUMBERS];
        numbers[0] = MAGIC;
        numbers[AT_END] = 5000;
        numbers[AT_CUT] = 5000;
        numbers[AT_RECORDED] = recorded;
        numbers[AT_COUNTS] = recorded;
        numbers[AT_BYTES] = codes.len() as u64;
        let mut bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        bytes.extend(codes);
        bytes
    }

    fn runs(bytes: &[u8]) -> Result<Vec<Run>, RecordedError> {
        let mut all = Vec::new();
        Recorded::new(bytes)?.each(|run| all.push(run))?;
        Ok(all)
    }

    #[test]
    fn mappings_are_read_beside_the_references() {
        let codes = [
            MAPPING, 3, 0x80, 1, 2, 5, 4, b'/', b'a', b'/', b'b', NEW, 20,
        ];
        let bytes = stored(1, &codes);
        let mut recorded = Recorded::new(&bytes[..]).unwrap();
        assert!(recorded.next_run().unwrap().is_some());
        let found = recorded.take_mappings();
        assert_eq!(
            (found[0].space, found[0].first, found[0].pages),
            (3, 128, 2)
        );
        assert_eq!((found[0].offset, &*found[0].name), (5, "/a/b"));
        for length in bytes.len() - codes.len() + 1..bytes.len() {
            let mut recorded = Recorded::new(&bytes[..length]).unwrap();
            while let Ok(Some(_)) = recorded.next_run() {}
        }
        let long = [MAPPING, 3, 1, 2, 5, 0xff, 0x7f];
        assert!(runs(&stored(0, &long)).is_err());
    }

    #[test]
    fn every_code_is_read_as_documented() {
        let slot = u8::try_from(slot_of(key(10, form::READ))).unwrap();
        let codes = [
            TASK,
            3,
            2,
            NEW,
            20,
            NEW + form::WRITE,
            22,
            REPEAT | 4,
            slot,
            TIME,
            0x80,
            0x10,
            NEW,
            1,
            REPEAT | REPEAT_MASK,
            7,
        ];
        let found = runs(&stored(2 + 5 + 1 + 1 + 71, &codes)).unwrap();
        let seen: Vec<(u64, Kind, u64, u64)> = found
            .iter()
            .map(|run| (run.page, run.kind, run.times, run.at))
            .collect();
        assert_eq!(
            seen,
            [
                (10, Kind::Read, 1, 0),
                (11, Kind::Write, 1, 0),
                (11, Kind::Write, 5, 0),
                (10, Kind::Read, 1, 0),
                (9, Kind::Read, 1, 2048),
                (9, Kind::Read, 71, 2048),
            ]
        );
        assert!(found.iter().all(|run| (run.task, run.space) == (3, 2)));
        assert_eq!(found[0].id(), 2 << PAGE_BITS | 10);
    }

    #[test]
    fn bytes_that_are_no_references_are_refused() {
        let fine = stored(1, &[NEW, 20]);
        assert_eq!(runs(&fine).unwrap().len(), 1);
        for length in 0..fine.len() {
            assert!(runs(&fine[..length]).is_err(), "{length}");
        }
        for (recorded, codes) in [
            (1, &[REPEAT][..]),
            (1, &[5]),
            (1, &[NEW + 5, 20]),
            (1, &[NEW, 1]),
            (2, &[NEW, 20]),
            (1, &[NEW, 20, REPEAT]),
            (1, &[TASK, 1, 0xff, 0xff, 0x7f, NEW, 20]),
            (
                1,
                &[
                    NEW, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
                ],
            ),
            (1, &[NEW, 20, 0xee]),
        ] {
            assert!(runs(&stored(recorded, codes)).is_err(), "{codes:?}");
        }
    }
}
