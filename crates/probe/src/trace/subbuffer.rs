//! Reads the events of one CPU from its sub-buffers.
//!
//! The format is defined in kernel/trace/ring_buffer.c and include/linux/ring_buffer.h: a page starts with a time and a
//! commit word, then events. Each event is a 32-bit header (5 bits type or length, 27 bits time since the last event)
//! and data.

use serde::{Deserialize, Serialize};

use super::format::PageLayout;

/// One event as stored in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// Time of the event in nanoseconds on the trace's clock.
    pub time: u64,
    /// Number of the CPU on which the event was recorded.
    pub cpu: u32,
    /// ID of the event's type, as in its format file.
    pub id: u16,
    /// Data of the event, including the common fields.
    pub data: &'a [u8],
}

/// Amount of data that is missing from a buffer or damaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Number of events that the kernel reports as lost.
    pub events: u64,
    /// Number of gaps for which the kernel does not report how many events were lost.
    pub gaps_unknown: u64,
    /// Number of sub-buffers that end within an event or are inconsistent; the rest of each was skipped.
    pub damaged: u64,
    /// Number of events with an earlier time than the previous event on the same CPU.
    pub backwards: u64,
}

impl Losses {
    /// Returns true if any data is missing or damaged.
    pub const fn any(&self) -> bool {
        self.events > 0 || self.gaps_unknown > 0 || self.damaged > 0
    }

    /// Returns the sum of two losses, number by number.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            events: self.events.saturating_add(other.events),
            gaps_unknown: self.gaps_unknown.saturating_add(other.gaps_unknown),
            damaged: self.damaged.saturating_add(other.damaged),
            backwards: self.backwards.saturating_add(other.backwards),
        }
    }
}

/// How sub-buffers are stored in a sequence of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stride {
    /// Whole pages, as read from `trace_pipe_raw`.
    Pages,
    /// Truncated to the committed data, as written by [`pack`].
    Packed,
}

/// Mask for the length of the committed data (`RB_MISSED_MASK` is above it).
const COMMIT_LENGTH: u64 = (1 << 27) - 1;
/// Flag in the commit word: events were lost before this page.
const MISSED: u64 = 1 << 31;
/// Flag in the commit word: the number of lost events is stored after the committed data.
const MISSED_STORED: u64 = 1 << 30;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Number of bits in an absolute time stamp. The upper bits come from the previous time.
const STAMP_BITS: u32 = 59;

/// Parsed header of a page.
#[derive(Debug, Clone, Copy)]
struct Header {
    time: u64,
    committed: usize,
    missed: bool,
    missed_stored: bool,
}

impl Header {
    fn read(bytes: &[u8], layout: &PageLayout) -> Option<Self> {
        let time = u64::from_le_bytes(*bytes.first_chunk()?);
        let rest = bytes.get(8..)?;
        let commit = match layout.commit_size {
            8 => u64::from_le_bytes(*rest.first_chunk()?),
            _ => u64::from(u32::from_le_bytes(*rest.first_chunk()?)),
        };
        Some(Self {
            time,
            committed: usize::try_from(commit & COMMIT_LENGTH).ok()?,
            missed: commit & MISSED != 0,
            missed_stored: commit & MISSED_STORED != 0,
        })
    }

    /// Returns the number of bytes of the page that are in use.
    fn used(&self, layout: &PageLayout) -> usize {
        let stored = if self.missed_stored {
            layout.commit_size
        } else {
            0
        };
        layout
            .data
            .saturating_add(self.committed)
            .saturating_add(stored)
    }
}

/// Appends a page from `trace_pipe_raw` to a packed buffer, without its unused end. A page that has no events and
/// reports no loss is skipped. Returns false if the page is inconsistent, and then appends nothing.
pub fn pack(page: &[u8], layout: &PageLayout, packed: &mut Vec<u8>) -> bool {
    let Some(header) = Header::read(page, layout) else {
        return false;
    };
    if header.committed == 0 && !header.missed {
        return true;
    }
    match page.get(..header.used(layout)) {
        Some(used) => {
            packed.extend_from_slice(used);
            true
        }
        None => false,
    }
}

/// Iterates over the events of one CPU in the order of recording. Uses constant memory and never panics, whatever the
/// data.
#[derive(Debug, Clone)]
pub struct CpuReader<'a> {
    cpu: u32,
    layout: PageLayout,
    stride: Stride,
    /// Bytes of the sub-buffers after the current one.
    rest: &'a [u8],
    /// Bytes of the current sub-buffer that are not read yet.
    page: &'a [u8],
    time: u64,
    latest: u64,
    losses: Losses,
}

impl<'a> CpuReader<'a> {
    /// Returns a reader for the events in `bytes`, which are sub-buffers of one CPU.
    pub fn new(cpu: u32, bytes: &'a [u8], layout: PageLayout, stride: Stride) -> Self {
        Self {
            cpu,
            layout,
            stride,
            rest: bytes,
            page: &[],
            time: 0,
            latest: 0,
            losses: Losses::default(),
        }
    }

    /// Returns the amount of lost and damaged data so far.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Starts reading the next sub-buffer. Returns false if there is none.
    fn open_page(&mut self) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        let Some(header) = Header::read(self.rest, &self.layout) else {
            self.losses.damaged += 1;
            self.rest = &[];
            return false;
        };
        let length = match self.stride {
            Stride::Pages => self.layout.page.min(self.rest.len()),
            Stride::Packed => header.used(&self.layout),
        }
        // Always make progress, whatever the layout says.
        .max(1);
        let Some((page, rest)) = self.rest.split_at_checked(length) else {
            // Truncated within a packed page: use what is there, and count it as damaged.
            self.losses.damaged += 1;
            self.page = self.rest.get(self.layout.data..).unwrap_or(&[]);
            self.time = header.time;
            self.rest = &[];
            return true;
        };
        self.rest = rest;
        let data = page.get(self.layout.data..).unwrap_or(&[]);
        if header.missed {
            let stored = data
                .get(header.committed..)
                .and_then(|bytes| bytes.first_chunk())
                .map(|bytes| u64::from_le_bytes(*bytes));
            match stored {
                Some(lost) if header.missed_stored => {
                    self.losses.events = self.losses.events.saturating_add(lost);
                }
                _ => self.losses.gaps_unknown += 1,
            }
        }
        if let Some(committed) = data.get(..header.committed) {
            self.page = committed;
        } else {
            self.losses.damaged += 1;
            self.page = data;
        }
        self.time = header.time;
        true
    }

    /// Skips the rest of the current sub-buffer and counts it as damaged.
    fn damaged(&mut self) {
        self.losses.damaged += 1;
        self.page = &[];
    }

    /// Completes an absolute time stamp of 59 bits with the upper bits of the previous time (ring_buffer.c,
    /// `rb_fix_abs_ts`).
    fn absolute(&self, stamp: u64) -> u64 {
        let above = !0 << STAMP_BITS;
        let mut time = stamp | (self.time & above);
        if time < self.time && self.time & above != 0 {
            time = time.wrapping_add(1 << STAMP_BITS);
        }
        time
    }
}

impl<'a> Iterator for CpuReader<'a> {
    type Item = RawEvent<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawEvent<'a>> {
        loop {
            let Some((header, body)) = self.page.split_first_chunk::<4>() else {
                if !self.page.is_empty() {
                    self.damaged();
                }
                if !self.open_page() {
                    return None;
                }
                continue;
            };
            let header = u32::from_le_bytes(*header);
            let kind = header & 0x1f;
            let delta = u64::from(header >> 5);
            let (data, rest) = match kind {
                1..=28 => {
                    let Some(parts) = body.split_at_checked(kind as usize * 4) else {
                        self.damaged();
                        continue;
                    };
                    parts
                }
                0 => {
                    // The first word is the length in bytes, including itself; the data is padded to whole words.
                    let length = body.first_chunk().map(|word| u32::from_le_bytes(*word));
                    let parts = length
                        .and_then(|length| usize::try_from(length).ok())
                        .filter(|&length| length >= 4)
                        .and_then(|length| body.split_at_checked(length.next_multiple_of(4)));
                    let Some((data, rest)) = parts else {
                        self.damaged();
                        continue;
                    };
                    (&data[4..], rest)
                }
                TIME_EXTEND | TIME_STAMP => {
                    let Some((word, rest)) = body.split_first_chunk::<4>() else {
                        self.damaged();
                        continue;
                    };
                    let extended = (u64::from(u32::from_le_bytes(*word)) << 27) + delta;
                    self.time = if kind == TIME_EXTEND {
                        self.time.wrapping_add(extended)
                    } else {
                        self.absolute(extended)
                    };
                    self.page = rest;
                    continue;
                }
                _ => {
                    debug_assert_eq!(kind, PADDING);
                    if delta == 0 {
                        // End of the page: no more events.
                        self.page = &[];
                        continue;
                    }
                    let length = body.first_chunk().map(|word| u32::from_le_bytes(*word));
                    let rest = length
                        .and_then(|length| usize::try_from(length).ok())
                        .and_then(|length| body.get(length.next_multiple_of(4).max(4)..));
                    let Some(rest) = rest else {
                        self.damaged();
                        continue;
                    };
                    // The event was discarded. Its time difference counts, unless it is 1: then it was 0, changed to
                    // distinguish the event from the end mark.
                    if delta > 1 {
                        self.time = self.time.wrapping_add(delta);
                    }
                    self.page = rest;
                    continue;
                }
            };
            self.page = rest;
            self.time = self.time.wrapping_add(delta);
            let Some(id) = data.first_chunk().map(|word| u16::from_le_bytes(*word)) else {
                self.damaged();
                continue;
            };
            if self.time < self.latest {
                self.losses.backwards += 1;
            } else {
                self.latest = self.time;
            }
            return Some(RawEvent {
                time: self.time,
                cpu: self.cpu,
                id,
                data,
            });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Writes sub-buffers in the kernel's format, for tests.
    #[derive(Default)]
    pub(crate) struct PageBuilder {
        pub(crate) data: Vec<u8>,
    }

    impl PageBuilder {
        pub(crate) fn event(mut self, delta: u32, data: &[u8]) -> Self {
            let words = u32::try_from(data.len() / 4).unwrap();
            if (1..=28).contains(&words) {
                self.data.extend((delta << 5 | words).to_le_bytes());
            } else {
                self.data.extend((delta << 5).to_le_bytes());
                self.data.extend((words * 4 + 4).to_le_bytes());
            }
            self.data.extend(data);
            self
        }

        pub(crate) fn word(mut self, kind: u32, delta: u32, word: u32) -> Self {
            self.data.extend((delta << 5 | kind).to_le_bytes());
            self.data.extend(word.to_le_bytes());
            self
        }

        pub(crate) fn packed(self, time: u64, flags: u64) -> Vec<u8> {
            let mut page = time.to_le_bytes().to_vec();
            page.extend((self.data.len() as u64 | flags).to_le_bytes());
            page.extend(self.data);
            page
        }

        pub(crate) fn whole(self, time: u64, flags: u64) -> Vec<u8> {
            let mut page = self.packed(time, flags);
            page.resize(4096, 0);
            page
        }
    }

    fn read(bytes: &[u8], stride: Stride) -> (Vec<(u64, u16)>, Losses) {
        let mut reader = CpuReader::new(0, bytes, PageLayout::default(), stride);
        let events = reader.by_ref().map(|e| (e.time, e.id)).collect();
        (events, reader.losses())
    }

    #[test]
    fn times_add_up_across_extends_stamps_and_discarded_events() {
        let page = PageBuilder::default()
            .event(5, &[7, 0, 0, 0])
            .word(TIME_EXTEND, 1, 2)
            .event(3, &[8, 0, 0, 0, 1, 1, 1, 1])
            .word(PADDING, 10, 4)
            .event(0, &[9, 0, 0, 0])
            .word(TIME_STAMP, 100, 1 << 20)
            .event(1, &[10, 0, 0, 0])
            .whole(1000, 0);
        let (events, losses) = read(&page, Stride::Pages);
        let extended = 1005 + 1 + (2 << 27) + 3;
        let stamp = 100 + (1 << 47);
        assert_eq!(
            events,
            [
                (1005, 7),
                (extended, 8),
                (extended + 10, 9),
                (stamp + 1, 10)
            ]
        );
        assert_eq!(losses, Losses::default());
    }

    #[test]
    fn an_event_of_many_words_and_the_end_mark_are_understood() {
        let long = vec![3; 160];
        let mut builder = PageBuilder::default().event(1, &long);
        builder.data.extend(PADDING.to_le_bytes());
        builder.data.extend([0xee; 40]);
        let page = builder.whole(0, 0);
        let (events, losses) = read(&page, Stride::Pages);
        assert_eq!(events, [(1, 0x0303)]);
        assert!(!losses.any());
    }

    #[test]
    fn lost_events_are_counted_with_and_without_their_number() {
        let mut known = PageBuilder::default()
            .event(0, &[1, 0, 0, 0])
            .packed(0, MISSED | MISSED_STORED);
        known.extend(42_u64.to_le_bytes());
        let unknown = PageBuilder::default()
            .event(0, &[1, 0, 0, 0])
            .packed(5, MISSED);
        let (events, losses) = read(&[known, unknown].concat(), Stride::Packed);
        assert_eq!(events.len(), 2);
        assert_eq!((losses.events, losses.gaps_unknown), (42, 1));
    }

    #[test]
    fn packing_keeps_every_event_and_drops_the_empty_rest() {
        let first = PageBuilder::default()
            .event(1, &[1, 0, 0, 0])
            .event(1, &[2, 0, 0, 0])
            .whole(10, 0);
        let second = PageBuilder::default()
            .event(1, &[3, 0, 0, 0])
            .whole(20, MISSED);
        let mut packed = Vec::new();
        let layout = PageLayout::default();
        assert!(pack(&first, &layout, &mut packed) && pack(&second, &layout, &mut packed));
        assert!(pack(&[0; 4096], &layout, &mut packed));
        assert!(packed.len() < 100);
        let whole = read(&[first, second].concat(), Stride::Pages);
        assert_eq!(read(&packed, Stride::Packed), whole);
    }

    #[test]
    fn time_going_backwards_is_counted() {
        let one = PageBuilder::default().event(0, &[1, 0, 0, 0]).packed(9, 0);
        let two = PageBuilder::default().event(0, &[1, 0, 0, 0]).packed(4, 0);
        let (events, losses) = read(&[one, two].concat(), Stride::Packed);
        assert_eq!(events.len(), 2);
        assert_eq!(losses.backwards, 1);
    }

    #[test]
    fn a_page_cut_within_an_event_gives_what_lies_before_and_says_so() {
        let page = PageBuilder::default()
            .event(1, &[1, 0, 0, 0])
            .event(1, &[2, 0, 0, 0, 0, 0, 0, 0])
            .packed(0, 0);
        let (events, losses) = read(&page[..page.len() - 3], Stride::Packed);
        assert_eq!(events, [(1, 1)]);
        assert!(losses.damaged > 0);
    }
}
