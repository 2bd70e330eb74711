//! How the output of a trial leaves its arena: a memory region that both sides map.
//!
//! In a guest the region is a persistent-memory module backed by a file of the host. So writing costs one store, uses
//! none of the guest's memory, and does not depend on the timing of the host. On the host it is plain shared memory.
//!
//! Layout, little endian: a head of one page (see [`Head`]), then frames. A frame is a head of 64 bytes (magic u32,
//! kind u32, capacity u64, length u64, name of 40 bytes padded with zeros), then `capacity` bytes; the next frame is
//! 64-byte aligned. A frame is complete when its magic is written, which the writer does last.

// The region is page-aligned and every frame 64-byte aligned, so narrower pointers may be cast.
#![allow(clippy::cast_ptr_alignment)]

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// First word of a region: `PGTIDE01`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PGTIDE01");
/// First word of a complete frame: `FRAM`.
pub const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"FRAM");
/// Size of the region's head in bytes.
pub const HEAD: usize = 4096;
/// Size of a frame's head in bytes; also the alignment of frames.
pub const FRAME_HEAD: usize = 64;
/// Maximum length of a frame's name in bytes.
pub const NAME: usize = 40;

/// Kind of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The report of a guest, with its [`crate::Results`], as JSON; at most one, the last frame written.
    Results = 1,
    /// An encoded [`pagetide_quantity::Series`].
    Series = 2,
    /// Bytes of any kind: the access log, raw trace buffers.
    Blob = 3,
}

impl Kind {
    /// Returns the kind with this number in a frame's head; `None` if the number is unknown.
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
    /// Nothing has been written yet.
    Boot = 0,
    /// The guest is at the ready point.
    Ready = 1,
    /// Settings are being applied and the ballast is being filled.
    Preparing = 2,
    /// The scenario is running.
    Running = 3,
    /// The scenario has ended; counters are read.
    Ended = 4,
    /// All frames are written.
    Done = 5,
    /// The list of the kernel's functions is written too, after an observed trial.
    Listed = 6,
}

impl Phase {
    /// Returns the phase with this number in the region's head; the last phase for an unknown number.
    pub const fn from_u32(number: u32) -> Self {
        match number {
            0 => Self::Boot,
            1 => Self::Ready,
            2 => Self::Preparing,
            3 => Self::Running,
            4 => Self::Ended,
            5 => Self::Done,
            _ => Self::Listed,
        }
    }
}

/// The head of an output region, at its start in shared memory.
#[repr(C)]
pub struct Head {
    /// [`MAGIC`], written by the process that creates the region.
    magic: AtomicU64,
    /// Size of the region in bytes.
    size: AtomicU64,
    /// Offset of the first free byte in the region. Private, because frames are exclusive only if this offset never
    /// decreases.
    used: AtomicU64,
    /// The trial's clock in nanoseconds, updated from time to time. It advances as long as the arena runs.
    pub clock: AtomicU64,
    /// Number of completed steps of the scenario.
    pub done: AtomicU64,
    /// Number of all steps of the scenario; zero if unknown.
    pub total: AtomicU64,
    /// Number of the current [`Phase`] of the trial.
    pub phase: AtomicU32,
    /// Nonzero if some output did not fit into the region.
    pub full: AtomicU32,
}

/// A region that is mapped by this process for `'m`. Cheap to copy; several processes may write concurrently.
#[derive(Clone, Copy, Debug)]
pub struct Region<'m> {
    base: *mut u8,
    size: usize,
    mapping: PhantomData<&'m Head>,
}

// SAFETY: a region reads and writes shared words through atomics only, and hands out the bytes of frames by an atomic
// counter that never goes back, so that no two threads or processes get the same bytes.
unsafe impl Send for Region<'_> {}
// SAFETY: as for `Send`: all that a shared reference allows goes through those atomics.
unsafe impl Sync for Region<'_> {}

/// Error: a frame does not fit into the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the output region of {size} bytes cannot take {wanted} more: shorten the scenario")]
pub struct RegionFull {
    /// Size of the region in bytes.
    pub size: usize,
    /// Requested capacity of the frame in bytes.
    pub wanted: usize,
}

/// A frame that is being written. It is complete only after [`Frame::finish`]. It cannot outlive the mapping.
pub struct Frame<'m> {
    head: *mut u8,
    body: *mut u8,
    capacity: usize,
    mapping: PhantomData<&'m mut [u8]>,
}

// SAFETY: the bytes between `head` and the end of `body` were handed out to this frame alone (`Region::frame`), and no
// state of a thread belongs to them.
unsafe impl Send for Frame<'_> {}

impl<'m> Region<'m> {
    /// Wraps a mapping of `size` bytes at `base`.
    ///
    /// # Safety
    /// `base` must be the page-aligned start of a mapping of `size` bytes, at least two pages, that stays mapped during
    /// `'m`. In that time every process that maps it must access its head and unfinished frames only through regions.
    pub const unsafe fn new(base: *mut u8, size: usize) -> Self {
        Self {
            base,
            size,
            mapping: PhantomData,
        }
    }

    /// Returns the same region limited to its first `size` bytes, so that new frames end before that offset.
    #[must_use]
    pub fn up_to(self, size: usize) -> Self {
        Self {
            size: size.min(self.size),
            ..self
        }
    }

    /// Returns the head of the region in shared memory.
    pub fn head(&self) -> &'m Head {
        // SAFETY: `new` was promised a page-aligned mapping of at least two pages during `'m`, and `Head` consists of
        // atomics only, for which every bit pattern is valid and which others may write meanwhile.
        unsafe { &*self.base.cast::<Head>() }
    }

    /// Initialises the region as empty.
    ///
    /// # Safety
    /// No existing frame may be used any more, by any process, because its bytes will be allocated again.
    pub unsafe fn format(&self) {
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

    /// Sets the phase of the trial.
    pub fn set_phase(&self, phase: Phase) {
        self.head().phase.store(phase as u32, Ordering::Release);
    }

    /// Returns the current phase of the trial.
    pub fn phase(&self) -> Phase {
        Phase::from_u32(self.head().phase.load(Ordering::Acquire))
    }

    /// Returns the maximum number of bytes that a new frame can hold.
    pub fn free(&self) -> usize {
        let used = usize::try_from(self.head().used.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        self.size.saturating_sub(used.saturating_add(FRAME_HEAD))
    }

    /// Allocates a frame of `capacity` bytes. Fails if the region has no space for it. Cuts a name at [`NAME`] bytes.
    pub fn frame(&self, kind: Kind, name: &str, capacity: usize) -> Result<Frame<'m>, RegionFull> {
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
        // SAFETY: `at..at + step` ends within the mapping (`end <= size`), and the counter, which only grows, was moved
        // past it by this call alone. Writes are aligned: `at` is a multiple of 64 in a page-aligned mapping.
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
                mapping: PhantomData,
            })
        }
    }

    /// Writes a complete frame. Fails if the region has no space for it.
    pub fn write(&self, kind: Kind, name: &str, bytes: &[u8]) -> Result<(), RegionFull> {
        let mut frame = self.frame(kind, name, bytes.len())?;
        frame.body()[..bytes.len()].copy_from_slice(bytes);
        frame.finish(bytes.len());
        Ok(())
    }
}

impl Frame<'_> {
    /// Returns the bytes of the frame, to be written.
    pub fn body(&mut self) -> &mut [u8] {
        // SAFETY: these bytes were handed out to this frame alone, the mapping lives as long as the frame, and the
        // borrow of `self` keeps the slice the only one. Fresh bytes of a mapping are initialised (zeros or old bytes).
        unsafe { std::slice::from_raw_parts_mut(self.body, self.capacity) }
    }

    /// Returns the maximum length of the frame's content in bytes.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Completes the frame. Its content is the first `length` bytes of the body.
    pub fn finish(self, length: usize) {
        // SAFETY: the head was handed out with the body to this frame alone, is 64-byte aligned, and is mapped as long
        // as the frame lives. Readers look at it only after they have seen the magic, which is stored last.
        unsafe {
            self.head
                .add(16)
                .cast::<u64>()
                .write(length.min(self.capacity) as u64);
            (*self.head.cast::<AtomicU32>()).store(FRAME_MAGIC, Ordering::Release);
        }
    }
}

/// A complete frame, for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameView<'a> {
    /// Kind of the frame's content.
    pub kind: Kind,
    /// Name of the frame.
    pub name: &'a str,
    /// Content of the frame.
    pub bytes: &'a [u8],
}

/// Position, kind and name of a complete frame in its region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramePosition {
    /// Kind of the frame's content.
    pub kind: Kind,
    /// Name of the frame.
    pub name: String,
    /// Offset of the frame's content from the start of the region, in bytes.
    pub at: u64,
    /// Length of the frame's content in bytes.
    pub length: u64,
}

/// Finds the complete frames of a region of `size` bytes. `read` copies bytes from an offset of the region, so that a
/// reader need not map memory that another process may still write. Unfinished frames are skipped; a damaged head ends
/// the search.
pub fn places(
    size: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Vec<FramePosition>> {
    let mut used = [0; 8];
    if size < HEAD as u64 {
        return Ok(Vec::new());
    }
    read(16, &mut used)?;
    let end = u64::from_le_bytes(used).min(size);
    let mut found = Vec::new();
    let mut at = HEAD as u64;
    let mut head = [0; FRAME_HEAD];
    while at < end && size - at >= FRAME_HEAD as u64 {
        read(at, &mut head)?;
        let Some((next, place)) = place(at, &head).filter(|(next, _)| *next <= end) else {
            break;
        };
        found.extend(place);
        at = next;
    }
    Ok(found)
}

/// Parses the head of a frame: returns the position of the next frame, and the frame if the frame is complete and of a
/// known kind. `None` if the head is inconsistent.
fn place(at: u64, head: &[u8; FRAME_HEAD]) -> Option<(u64, Option<FramePosition>)> {
    let word = |o: usize| head.get(o..o + 4)?.try_into().ok().map(u32::from_le_bytes);
    let long = |o: usize| head.get(o..o + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (capacity, length) = (long(8)?, long(16)?);
    let body = at + FRAME_HEAD as u64;
    let next = capacity
        .checked_next_multiple_of(FRAME_HEAD as u64)?
        .checked_add(body)?;
    if length > capacity {
        return None;
    }
    let label = head.get(24..24 + NAME)?;
    let label = &label[..label.iter().position(|b| *b == 0).unwrap_or(NAME)];
    let place = match (
        word(0)?,
        Kind::from_u32(word(4)?),
        std::str::from_utf8(label),
    ) {
        (FRAME_MAGIC, Some(kind), Ok(name)) => Some(FramePosition {
            kind,
            name: name.to_owned(),
            at: body,
            length,
        }),
        _ => None,
    };
    Some((next, place))
}

/// Returns the complete frames in the bytes of a region. A damaged head ends the search. Never panics.
pub fn frames(region: &[u8]) -> impl Iterator<Item = FrameView<'_>> {
    let copy = |at: u64, buffer: &mut [u8]| {
        let at = usize::try_from(at).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let bytes = region.get(at..at.saturating_add(buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    };
    let found = places(region.len() as u64, copy).unwrap_or_default();
    found.into_iter().filter_map(|place| {
        let at = usize::try_from(place.at).ok()?;
        let end = at.checked_add(usize::try_from(place.length).ok()?)?;
        let name = region.get(at - NAME..)?.get(..place.name.len())?;
        Some(FrameView {
            kind: place.kind,
            name: std::str::from_utf8(name).ok()?,
            bytes: region.get(at..end)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a page-aligned region of plain memory, for tests, and the memory that contains it.
    fn region(pages: usize) -> (Vec<u64>, Region<'static>) {
        let mut memory = vec![0_u64; (pages + 1) * 512];
        let start = memory.as_mut_ptr().cast::<u8>();
        let skip = start.align_offset(4096);
        // SAFETY: the vector has one page more than needed for alignment; every test keeps it, untouched, as long as it
        // uses the region, which is new and so without frames.
        let region = unsafe {
            let region = Region::new(start.add(skip), pages * 4096);
            region.format();
            region
        };
        (memory, region)
    }

    fn bytes<'a>(region: &'a Region<'_>) -> &'a [u8] {
        // SAFETY: every test keeps the memory behind the region, and writes nothing while it looks at these bytes.
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
    fn a_shortened_region_keeps_frames_away_from_what_lies_behind() {
        let (_memory, region) = region(4);
        let short = region.up_to(8192);
        assert!(short.frame(Kind::Blob, "big", 5000).is_err());
        assert!(region.frame(Kind::Blob, "big", 5000).is_ok());
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
