//! A minimal io_uring client for copying. It submits one read or write at a time, by raw system calls.
//!
//! Data layouts: include/uapi/linux/io_uring.h. Linux supports the read and the write operation since 5.6.

// Offsets come from the kernel and are multiples of the word size.
#![allow(clippy::cast_ptr_alignment)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use pagetide_system::{Mapping, Source};

use crate::number;

const ENTRIES: u32 = 4;
const READ: u8 = 22;
const WRITE: u8 = 23;
const ENTER_GETEVENTS: u32 = 1;
const OFF_SQ: u64 = 0;
const OFF_CQ: u64 = 0x800_0000;
const OFF_ENTRIES: u64 = 0x1000_0000;

#[repr(C)]
#[derive(Default)]
struct SqOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user: u64,
}

#[repr(C)]
#[derive(Default)]
struct CqOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    overflow: u32,
    completions: u32,
    flags: u32,
    reserved: u32,
    user: u64,
}

#[repr(C)]
#[derive(Default)]
struct Setup {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    cpu: u32,
    idle: u32,
    features: u32,
    workers: u32,
    reserved: [u32; 3],
    sq: SqOffsets,
    cq: CqOffsets,
}

#[repr(C)]
#[derive(Default)]
struct Submission {
    operation: u8,
    flags: u8,
    priority: u16,
    file: i32,
    offset: u64,
    address: u64,
    length: u32,
    rw_flags: u32,
    user: u64,
    rest: [u64; 3],
}

#[repr(C)]
struct Completion {
    user: u64,
    result: i32,
    flags: u32,
}

struct Area(Mapping);

impl Area {
    fn map(ring: &OwnedFd, size: usize, offset: u64) -> io::Result<Self> {
        Mapping::with(Source::File(ring.as_fd(), offset), size, libc::MAP_POPULATE).map(Self)
    }

    /// Returns the word at `offset`, which is shared with the kernel. Panics if it is outside of the mapping.
    fn word(&self, offset: u32) -> &AtomicU32 {
        assert!(
            offset as usize + 4 <= self.0.length(),
            "the kernel gave an offset beyond its ring"
        );
        // SAFETY: checked to lie within the mapping; the word is shared with the kernel and only used atomically.
        unsafe { &*self.0.at(offset as usize).cast() }
    }

    /// Returns the address of element `index` of the array of `T` at `offset`. Panics if it is outside of the mapping.
    fn item<T>(&self, offset: u32, index: u32) -> *mut T {
        let at = offset as usize + index as usize * size_of::<T>();
        assert!(
            at + size_of::<T>() <= self.0.length(),
            "the kernel gave an offset beyond its ring"
        );
        self.0.at(at).cast()
    }
}

struct Ring {
    submissions: Area,
    completions: Area,
    entries: Area,
    setup: Setup,
    file: OwnedFd,
}

impl Ring {
    fn new() -> io::Result<Self> {
        let mut setup = Setup::default();
        // SAFETY: `setup` has the layout the kernel writes.
        let file = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut setup) };
        let file = i32::try_from(file).map_err(|_| io::ErrorKind::InvalidData)?;
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let sq = setup.sq.array as usize + setup.sq_entries as usize * 4;
        let cq =
            setup.cq.completions as usize + setup.cq_entries as usize * size_of::<Completion>();
        Ok(Self {
            submissions: Area::map(&file, sq, OFF_SQ)?,
            completions: Area::map(&file, cq, OFF_CQ)?,
            entries: Area::map(
                &file,
                setup.sq_entries as usize * size_of::<Submission>(),
                OFF_ENTRIES,
            )?,
            setup,
            file,
        })
    }

    /// Submits one operation, waits until it is complete and returns its result.
    fn once(&self, submission: Submission) -> io::Result<u64> {
        let tail = self.submissions.word(self.setup.sq.tail);
        let at = tail.load(Ordering::Acquire);
        let index = at
            & self
                .submissions
                .word(self.setup.sq.mask)
                .load(Ordering::Relaxed);
        // SAFETY: the places lie within the mappings, and the kernel reads them only after the tail moves.
        unsafe {
            self.entries.item::<Submission>(0, index).write(submission);
            self.submissions
                .item::<u32>(self.setup.sq.array, index)
                .write(index);
        }
        tail.store(at.wrapping_add(1), Ordering::Release);
        // SAFETY: the ring is open; no signal mask is given.
        let done = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.file.as_raw_fd(),
                1,
                1,
                ENTER_GETEVENTS,
                0,
                0,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        let head = self.completions.word(self.setup.cq.head);
        let at = head.load(Ordering::Acquire);
        let index = at
            & self
                .completions
                .word(self.setup.cq.mask)
                .load(Ordering::Relaxed);
        if self
            .completions
            .word(self.setup.cq.tail)
            .load(Ordering::Acquire)
            == at
        {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // SAFETY: the place lies within the mapping and the kernel has written it.
        let result = unsafe {
            self.completions
                .item::<Completion>(self.setup.cq.completions, index)
                .read()
                .result
        };
        head.store(at.wrapping_add(1), Ordering::Release);
        u64::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
    }
}

/// Copies `size` bytes by reads and writes as large as the buffer.
pub(crate) fn copy(from: &File, to: &File, size: u64, buffer: &mut [u8]) -> io::Result<()> {
    let ring = Ring::new()?;
    let submission = |operation, file: &File, offset, address: *mut u8, length: u64| Submission {
        operation,
        file: file.as_raw_fd(),
        offset,
        address: address.addr() as u64,
        length: number::narrow(length),
        ..Submission::default()
    };
    let address = buffer.as_mut_ptr();
    let _ = address.expose_provenance();
    let mut done = 0;
    while done < size {
        let step = (size - done).min(buffer.len() as u64);
        let read = ring.once(submission(READ, from, done, address, step))?;
        let mut written = 0;
        while written < read {
            // SAFETY: `written` is below the number of bytes read into the buffer.
            let rest = unsafe { address.add(number::index(written)) };
            let wrote = ring.once(submission(WRITE, to, done + written, rest, read - written))?;
            if wrote == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            written += wrote;
        }
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        done += read;
    }
    Ok(())
}
