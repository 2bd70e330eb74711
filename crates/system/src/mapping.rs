//! Memory mappings that are unmapped when dropped.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// Kind of memory that is mapped.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// Private anonymous memory; child processes get copies on write.
    Private,
    /// Shared anonymous memory; child processes share it.
    Shared,
    /// A file or device from this offset in bytes on, shared and writable.
    File(BorrowedFd<'a>, u64),
    /// A file or device from this offset in bytes on, shared and read-only.
    ReadOnly(BorrowedFd<'a>, u64),
}

impl<'a> Source<'a> {
    /// Returns the whole file from offset 0 as a source, shared and writable.
    pub fn file(file: &'a impl AsFd) -> Self {
        Self::File(file.as_fd(), 0)
    }
}

/// A mapped range of the address space. The bytes are accessed through raw pointers only, because other processes, the
/// kernel or a timed loop may change them at any time.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping belongs to the whole process, not to the thread that created it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of the source. Fails if mmap(2) fails.
    pub fn new(source: Source<'_>, length: usize) -> io::Result<Self> {
        Self::with(source, length, 0)
    }

    /// Maps `length` bytes of the source with additional mmap(2) flags, such as `MAP_POPULATE` or `MAP_NORESERVE`.
    pub fn with(source: Source<'_>, length: usize, flags: libc::c_int) -> io::Result<Self> {
        let (kind, file, offset) = match source {
            Source::Private => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
            Source::Shared => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0),
            Source::File(file, offset) | Source::ReadOnly(file, offset) => {
                (libc::MAP_SHARED, file.as_raw_fd(), offset)
            }
        };
        let rights = match source {
            Source::ReadOnly(..) => libc::PROT_READ,
            _ => libc::PROT_READ | libc::PROT_WRITE,
        };
        let offset = libc::off_t::try_from(offset)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "it lies too far"))?;
        // SAFETY: the kernel chooses the address, so no memory in use is replaced.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                rights,
                kind | flags,
                file,
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast())
            .map(|start| Self { start, length })
            .ok_or_else(|| io::Error::other("the kernel mapped address zero"))
    }

    /// Keeps `length` bytes of the mapping from offset `from` on, and unmaps the rest. Both numbers must be multiples
    /// of the page size. Panics if the part exceeds the mapping.
    #[must_use]
    pub fn part(self, from: usize, length: usize) -> Self {
        let end = from.checked_add(length).filter(|end| *end <= self.length);
        let end = end.expect("a part lies within its mapping");
        // SAFETY: head and tail lie within the mapping, which nobody else holds, and are given back once: `self` is
        // forgotten, and what remains of it belongs to the result.
        let start = unsafe {
            if from > 0 {
                libc::munmap(self.start.as_ptr().cast(), from);
            }
            if end < self.length {
                libc::munmap(self.start.as_ptr().add(end).cast(), self.length - end);
            }
            self.start.add(from)
        };
        std::mem::forget(self);
        Self { start, length }
    }

    /// Returns the address of the first byte of the mapping.
    pub const fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the size of the mapping in bytes.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns the address of the byte at `offset`, which may be the end of the mapping. Panics if it is beyond it.
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.length, "{offset} is outside of the mapping");
        // SAFETY: checked to lie within the mapping or just at its end.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Copies `bytes` into the mapping at `offset`. Panics if they do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(
            offset
                .checked_add(bytes.len())
                .is_some_and(|end| end <= self.length),
            "{} bytes at {offset} are outside of the mapping",
            bytes.len()
        );
        // SAFETY: the range lies within the mapping, and `bytes` cannot: nobody makes references into a mapping.
        unsafe {
            self.at(offset)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Calls madvise(2) for a range of the mapping. Returns false if the kernel refuses or the range is outside of the
    /// mapping.
    pub fn advise(&self, from: usize, length: usize, advice: libc::c_int) -> bool {
        if from.checked_add(length).is_none_or(|end| end > self.length) {
            return false;
        }
        // SAFETY: the range lies within the mapping; advice either changes no content or discards content that the caller
        // gives up.
        unsafe { libc::madvise(self.at(from).cast(), length, advice) == 0 }
    }

    /// Binds the whole mapping to a memory node: its pages are allocated on this node only, or not at all. Fails if
    /// mbind(2) fails.
    pub fn bind(&self, node: u32) -> io::Result<()> {
        /// Mode of mbind(2) for pages on the given nodes only. Source: kernel `include/uapi/linux/mempolicy.h`.
        const BIND: libc::c_int = 2;
        let nodes: libc::c_ulong = 1_u64.checked_shl(node).unwrap_or(0);
        // The kernel subtracts one from the number of bits.
        let bits: libc::c_ulong = 65;
        // SAFETY: the range is this mapping; the mask of 64 bits lives through the call.
        let status = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.start.as_ptr(),
                self.length,
                BIND,
                &raw const nodes,
                bits,
                0,
            )
        };
        match status {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Locks the whole mapping in memory. `flags` are the flags of mlock2(2). Fails if mlock2(2) fails.
    pub fn lock(&self, flags: libc::c_uint) -> io::Result<()> {
        // SAFETY: the range is this mapping.
        match unsafe { libc::mlock2(self.start.as_ptr().cast(), self.length, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own and hands out no references to its bytes; every use of a raw pointer into it
        // is unsafe code that has the value at hand.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_its_content_and_the_rest_is_given_back() {
        let whole = Mapping::new(Source::Private, 3 * 4096).unwrap();
        whole.write(4096, b"kept");
        let part = whole.part(4096, 4096);
        assert_eq!(part.length(), 4096);
        // SAFETY: four bytes lie within the page.
        assert_eq!(unsafe { part.start().cast::<[u8; 4]>().read() }, *b"kept");
        assert!(!part.advise(4096, 1, libc::MADV_DONTNEED));
    }

    #[test]
    fn a_file_shows_what_was_written_through_its_mapping() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        Mapping::new(Source::File(file.as_fd(), 4096), 4096)
            .unwrap()
            .write(1, b"x");
        let mut byte = [0];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, 4097).unwrap();
        assert_eq!(byte, *b"x");
        let read_only = Mapping::new(Source::ReadOnly(file.as_fd(), 0), 4096);
        assert!(read_only.is_ok());
    }

    #[test]
    #[should_panic(expected = "outside of the mapping")]
    fn writing_past_the_end_is_refused() {
        Mapping::new(Source::Private, 4096)
            .unwrap()
            .write(4095, b"xy");
    }
}
