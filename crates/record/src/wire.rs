//! How a trial's output leaves its arena: a region of memory that both sides map.
//!
//! In a guest the region is the memory of a PCI device backed by a file of the host, so that writing it costs a store,
//! takes nothing of the guest's own memory and cannot bring host timing in. On the host it is plain shared memory.
//!
//! Layout, little endian: a head of one page (see the offsets below), then frames. A frame is 64 bytes of head (magic
//! u32, kind u32, capacity u64, length u64, name of 40 bytes padded with zeros), then `capacity` bytes, the next frame
//! 64-byte aligned. A frame is counted when its magic is written, which is the last thing the writer does.

// The region is page aligned and every frame 64-byte aligned, so that narrower pointers may be cast.
#![allow(clippy::cast_ptr_alignment)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// First word of a region: `PGTIDE01`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PGTIDE01");
/// First word of a complete frame: `FRAM`.
pub const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"FRAM");
/// Size of the region's head.
pub const HEAD: usize = 4096;
/// Size of a frame's head and alignment of frames.
pub const FRAME_HEAD: usize = 64;
/// Longest name of a frame.
pub const NAME: usize = 40;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// [`crate::Results`] as JSON; exactly one, the last frame written.
    Results = 1,
    /// An encoded [`pagetide_quantity::Series`].
    Series = 2,
    /// Bytes of any kind: the access log, raw trace buffers.
    Blob = 3,
}

impl Kind {
    /// The kind of this number.
    pub const fn from_u32(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Results),
            2 => Some(Self::Series),
            3 => Some(Self::Blob),
            _ => None,
        }
    }
}

/// Phases of a trial, as the guest reports them in the region's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// Nothing was written yet.
    Boot = 0,
    /// At the ready point.
    Ready = 1,
    /// Applying settings, filling the ballast.
    Preparing = 2,
    /// The scenario runs.
    Running = 3,
    /// The scenario ended; counters are read.
    Ended = 4,
    /// All frames are written.
    Done = 5,
}

impl Phase {
    /// The phase of this number, the last one for unknown numbers.
    pub const fn from_u32(number: u32) -> Self {
        match number {
            0 => Self::Boot,
            1 => Self::Ready,
            2 => Self::Preparing,
            3 => Self::Running,
            4 => Self::Ended,
            _ => Self::Done,
        }
    }
}

/// The region's head, as it lies in memory.
#[repr(C)]
pub struct Head {
    /// [`MAGIC`], written by whoever makes the region.
    pub magic: AtomicU64,
    /// Size of the region.
    pub size: AtomicU64,
    /// Offset of the first free byte.
    pub used: AtomicU64,
    /// The trial's clock in nanoseconds, renewed now and then: it moves as long as the arena lives.
    pub clock: AtomicU64,
    /// Steps the scenario has done.
    pub done: AtomicU64,
    /// Steps the scenario will do, zero where unknown.
    pub total: AtomicU64,
    /// [`Phase`].
    pub phase: AtomicU32,
    /// Set where something did not fit.
    pub full: AtomicU32,
}

/// A region that this process maps. Cheap to copy; several processes may write at once.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    base: *mut u8,
    size: usize,
}

// SAFETY: every access to shared words goes through atomics, and frames are handed out by an atomic counter, so that
// no two writers get the same bytes.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// Output does not fit the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the output region of {size} bytes cannot take {wanted} more: shorten the scenario")]
pub struct RegionFull {
    /// Size of the region.
    pub size: usize,
    /// Bytes that were asked for.
    pub wanted: usize,
}

/// A frame being written; counted only once [`Frame::finish`] was called.
pub struct Frame {
    head: *mut u8,
    body: *mut u8,
    capacity: usize,
}

// SAFETY: a frame owns its bytes exclusively, see `Region`.
unsafe impl Send for Frame {}

impl Region {
    /// Takes a mapping of `size` bytes at `base`.
    ///
    /// # Safety
    /// `base` must be the page-aligned start of a shared mapping of `size` bytes, at least two pages, that stays
    /// mapped as long as the value or a copy of it lives.
    pub const unsafe fn new(base: *mut u8, size: usize) -> Self {
        Self { base, size }
    }

    /// The head.
    pub fn head(&self) -> &Head {
        // SAFETY: the mapping is at least two pages and page aligned, and `Head` consists of atomics only, for which
        // every bit pattern is valid.
        unsafe { &*self.base.cast::<Head>() }
    }

    /// Makes an empty region of it.
    pub fn format(&self) {
        let head = self.head();
        head.size.store(self.size as u64, Ordering::Relaxed);
        head.used.store(HEAD as u64, Ordering::Relaxed);
        head.clock.store(0, Ordering::Relaxed);
        head.done.store(0, Ordering::Relaxed);
        head.total.store(0, Ordering::Relaxed);
        head.phase.store(0, Ordering::Relaxed);
        head.full.store(0, Ordering::Relaxed);
        head.magic.store(MAGIC, Ordering::Release);
    }

    /// Says which phase the trial is in.
    pub fn set_phase(&self, phase: Phase) {
        self.head().phase.store(phase as u32, Ordering::Release);
    }

    /// Which phase the trial is in.
    pub fn phase(&self) -> Phase {
        Phase::from_u32(self.head().phase.load(Ordering::Acquire))
    }

    /// Bytes still free.
    pub fn free(&self) -> usize {
        let used = usize::try_from(self.head().used.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        self.size.saturating_sub(used.saturating_add(FRAME_HEAD))
    }

    /// Hands out a frame of `capacity` bytes.
    pub fn frame(&self, kind: Kind, name: &str, capacity: usize) -> Result<Frame, RegionFull> {
        let full = RegionFull {
            size: self.size,
            wanted: capacity,
        };
        let step = capacity
            .checked_next_multiple_of(FRAME_HEAD)
            .and_then(|body| body.checked_add(FRAME_HEAD))
            .ok_or(full)?;
        let used = &self.head().used;
        let size = self.size;
        let at = used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |at| {
                let end = usize::try_from(at).ok()?.checked_add(step)?;
                (end <= size).then_some(end as u64)
            })
            .map_err(|_| {
                self.head().full.store(1, Ordering::Relaxed);
                full
            })?;
        let at = usize::try_from(at).map_err(|_| full)?;
        let mut label = [0_u8; NAME];
        let length = name.len().min(NAME);
        label[..length].copy_from_slice(&name.as_bytes()[..length]);
        // SAFETY: `at..at + step` lies within the mapping and was handed out to this call alone.
        unsafe {
            let head = self.base.add(at);
            head.cast::<u32>().write(0);
            head.add(4).cast::<u32>().write(kind as u32);
            head.add(8).cast::<u64>().write(capacity as u64);
            head.add(16).cast::<u64>().write(0);
            head.add(24).copy_from_nonoverlapping(label.as_ptr(), NAME);
            Ok(Frame {
                head,
                body: head.add(FRAME_HEAD),
                capacity,
            })
        }
    }

    /// Writes a whole frame.
    pub fn write(&self, kind: Kind, name: &str, bytes: &[u8]) -> Result<(), RegionFull> {
        let mut frame = self.frame(kind, name, bytes.len())?;
        frame.body()[..bytes.len()].copy_from_slice(bytes);
        frame.finish(bytes.len());
        Ok(())
    }
}

impl Frame {
    /// The bytes to write.
    pub fn body(&mut self) -> &mut [u8] {
        // SAFETY: the frame owns `capacity` bytes at `body` within a live mapping.
        unsafe { std::slice::from_raw_parts_mut(self.body, self.capacity) }
    }

    /// Bytes that can be written.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Counts the frame with its first `length` bytes.
    pub fn finish(self, length: usize) {
        // SAFETY: the frame's head lies within the mapping, 64-byte aligned.
        unsafe {
            self.head
                .add(16)
                .cast::<u64>()
                .write(length.min(self.capacity) as u64);
            (*self.head.cast::<AtomicU32>()).store(FRAME_MAGIC, Ordering::Release);
        }
    }
}

/// A complete frame as the reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameView<'a> {
    /// What it holds.
    pub kind: Kind,
    /// Its name.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Reads the complete frames of a region's bytes. Frames that were begun but not finished are passed over; a damaged
/// head ends the walk. Never panics, whatever the bytes.
pub fn frames(region: &[u8]) -> impl Iterator<Item = FrameView<'_>> {
    let mut at = HEAD;
    let used = region
        .get(16..24)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u64::from_le_bytes);
    let end = usize::try_from(used)
        .unwrap_or(usize::MAX)
        .min(region.len());
    std::iter::from_fn(move || {
        loop {
            let head = region.get(at..at.checked_add(FRAME_HEAD)?)?;
            if at >= end {
                return None;
            }
            let word = |o: usize| head.get(o..o + 4)?.try_into().ok().map(u32::from_le_bytes);
            let long = |o: usize| head.get(o..o + 8)?.try_into().ok().map(u64::from_le_bytes);
            let capacity = usize::try_from(long(8)?).ok()?;
            let length = usize::try_from(long(16)?).ok()?;
            let body = at + FRAME_HEAD;
            let next = capacity
                .checked_next_multiple_of(FRAME_HEAD)?
                .checked_add(body)?;
            if next > end || length > capacity {
                return None;
            }
            let complete = word(0)? == FRAME_MAGIC;
            at = next;
            if !complete {
                continue;
            }
            let label = head.get(24..24 + NAME)?;
            let label = &label[..label.iter().position(|b| *b == 0).unwrap_or(NAME)];
            let (Some(kind), Ok(name)) = (Kind::from_u32(word(4)?), std::str::from_utf8(label))
            else {
                continue;
            };
            return Some(FrameView {
                kind,
                name,
                bytes: region.get(body..body + length)?,
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A page-aligned region of plain memory.
    fn region(pages: usize) -> (Vec<u64>, Region) {
        let mut memory = vec![0_u64; (pages + 1) * 512];
        let start = memory.as_mut_ptr().cast::<u8>();
        let skip = start.align_offset(4096);
        // SAFETY: the vector has one page more than needed for alignment and outlives the region in these tests.
        let region = unsafe { Region::new(start.add(skip), pages * 4096) };
        region.format();
        (memory, region)
    }

    fn bytes(region: &Region) -> &[u8] {
        // SAFETY: the memory behind the region outlives it in these tests and nobody writes while it is read.
        unsafe { std::slice::from_raw_parts(region.base, region.size) }
    }

    #[test]
    fn finished_frames_are_read_in_order_and_unfinished_ones_passed_over() {
        let (_memory, region) = region(4);
        region.write(Kind::Blob, "log", b"12345").unwrap();
        let unfinished = region.frame(Kind::Blob, "lost", 100).unwrap();
        region.write(Kind::Series, "ages", b"").unwrap();
        let _ = unfinished.capacity();
        let seen: Vec<_> = frames(bytes(&region))
            .map(|f| (f.kind, f.name, f.bytes))
            .collect();
        assert_eq!(
            seen,
            [
                (Kind::Blob, "log", &b"12345"[..]),
                (Kind::Series, "ages", &b""[..])
            ]
        );
    }

    #[test]
    fn a_full_region_refuses_and_says_so() {
        let (_memory, region) = region(2);
        assert!(region.frame(Kind::Blob, "big", 5000).is_err());
        assert_eq!(region.head().full.load(Ordering::Relaxed), 1);
        assert!(region.frame(Kind::Blob, "fits", 1000).is_ok());
    }

    proptest! {
        #[test]
        fn damaged_regions_never_panic(mut noise in proptest::collection::vec(any::<u8>(), 4096..12000), used in any::<u16>()) {
            noise[16..24].copy_from_slice(&u64::from(used).to_le_bytes());
            for frame in frames(&noise).take(100) {
                prop_assert!(frame.bytes.len() <= noise.len());
            }
        }
    }
}
