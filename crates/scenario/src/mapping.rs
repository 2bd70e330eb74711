//! A mapping of the workload: address space with pages that are touched, filled and given back.

// Pages are aligned far beyond any word.
#![allow(clippy::cast_ptr_alignment)]

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

use pagetide_quantity::{Bytes, Pages};

use crate::error::Stop;
use crate::fill::Filler;
use crate::number;

/// Size of a page in memory.
pub(crate) const PAGE: usize = 4096;

/// Address space of the workload; given back when dropped.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    pages: u64,
}

impl Mapping {
    /// Anonymous memory without huge pages, so that what is measured does not depend on luck.
    pub(crate) fn anonymous(pages: Pages) -> Result<Self, Stop> {
        let mapping = Self::map(
            pages,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
        )?;
        mapping.advise(libc::MADV_NOHUGEPAGE);
        Ok(mapping)
    }

    /// Anonymous memory that may have huge pages, aligned to `align` bytes (a power of two).
    pub(crate) fn aligned(pages: Pages, align: u64) -> Result<Self, Stop> {
        let slack = Pages(pages.0 + align / PAGE as u64);
        let whole = Self::anonymous_raw(slack)?;
        let address = whole.start.as_ptr().addr() as u64;
        let before = number::index(address.next_multiple_of(align) - address);
        let size = number::index(pages.bytes().0);
        // SAFETY: head and tail lie within the mapping, which was just made: nothing points there, and `whole`, forgotten
        // below, does not unmap them again.
        unsafe {
            let base = whole.start.as_ptr();
            if before > 0 {
                libc::munmap(base.cast(), before);
            }
            let tail = whole.bytes() - before - size;
            if tail > 0 {
                libc::munmap(base.add(before + size).cast(), tail);
            }
        }
        // SAFETY: `before` lies within the mapping.
        let start = unsafe { whole.start.add(before) };
        std::mem::forget(whole);
        Ok(Self {
            start,
            pages: pages.0,
        })
    }

    fn anonymous_raw(pages: Pages) -> Result<Self, Stop> {
        Self::map(
            pages,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
        )
    }

    /// Shared anonymous memory, for words that processes share.
    pub(crate) fn shared(pages: Pages) -> Result<Self, Stop> {
        Self::map(
            pages,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            -1,
        )
    }

    /// The first `pages` of a file, shared.
    pub(crate) fn file(file: &File, pages: Pages) -> Result<Self, Stop> {
        Self::map(pages, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// The whole of a packet ring.
    pub(crate) fn ring(socket: &OwnedFd, pages: Pages) -> Result<Self, Stop> {
        Self::map(pages, libc::MAP_SHARED, socket.as_raw_fd())
    }

    /// The first `pages` of a file with the system's own error; `whole` says whether the file is at least as long, without
    /// which touching the end would be fatal.
    pub(crate) fn of_file(
        file: &File,
        pages: Pages,
        writable: bool,
        whole: bool,
    ) -> std::io::Result<Self> {
        if !whole {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let rights = if writable {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        let mapped = Self::map_with(pages, rights, libc::MAP_SHARED, file.as_raw_fd());
        mapped.map_err(|stop| match stop {
            Stop::System { source, .. } => source,
            other => std::io::Error::other(other.to_string()),
        })
    }

    fn map(pages: Pages, flags: libc::c_int, file: libc::c_int) -> Result<Self, Stop> {
        Self::map_with(pages, libc::PROT_READ | libc::PROT_WRITE, flags, file)
    }

    fn map_with(
        pages: Pages,
        rights: libc::c_int,
        flags: libc::c_int,
        file: libc::c_int,
    ) -> Result<Self, Stop> {
        let size = number::index(pages.bytes().0);
        // SAFETY: the kernel chooses the address, so no memory in use is touched.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, flags, file, 0) };
        if start == libc::MAP_FAILED {
            return Err(Stop::last(format!("cannot map {}", pages.bytes())));
        }
        NonNull::new(start.cast())
            .map(|start| Self {
                start,
                pages: pages.0,
            })
            .ok_or_else(|| Stop::last("cannot map memory at address zero"))
    }

    /// Gives the kernel advice on all of it; false where it does not take it.
    pub(crate) fn advise(&self, advice: libc::c_int) -> bool {
        self.advise_part(0, self.pages, advice)
    }

    /// Gives the kernel advice on `count` pages from page `from`; false where it does not take it.
    pub(crate) fn advise_part(&self, from: u64, count: u64, advice: libc::c_int) -> bool {
        if from.saturating_add(count) > self.pages {
            return false;
        }
        let size = number::index(Pages(count).bytes().0);
        // SAFETY: the range lies within the mapping; advice used here either changes no content or discards content
        // that the caller gives up.
        unsafe { libc::madvise(self.page(from).cast(), size, advice) == 0 }
    }

    /// Number of pages.
    pub(crate) const fn pages(&self) -> u64 {
        self.pages
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        number::index(Pages(self.pages).bytes().0)
    }

    /// Size.
    pub(crate) const fn size(&self) -> Bytes {
        Pages(self.pages).bytes()
    }

    /// First byte.
    pub(crate) const fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// First byte of a page; the page must exist.
    pub(crate) fn page(&self, page: u64) -> *mut u8 {
        assert!(page <= self.pages, "page {page} is outside of the mapping");
        // SAFETY: checked to lie within the mapping or just at its end.
        unsafe { self.start.as_ptr().add(number::index(page) * PAGE) }
    }

    /// Fills pages in ascending order.
    pub(crate) fn fill(&self, filler: &Filler, from: u64, count: u64) {
        for page in from..from.saturating_add(count).min(self.pages) {
            self.fill_page(filler, page);
        }
    }

    /// Fills one page.
    pub(crate) fn fill_page(&self, filler: &Filler, page: u64) {
        // SAFETY: `page` is checked to lie within the mapping, and workload memory is reached through raw pointers
        // only, so that no reference to it exists.
        unsafe { filler.page(self.page(page), page) }
    }

    /// Reads one word of a page.
    pub(crate) fn read_page(&self, page: u64) -> u64 {
        assert!(page < self.pages, "page {page} is outside of the mapping");
        // SAFETY: the page lies within the mapping.
        unsafe { self.page(page).cast::<u64>().read_volatile() }
    }

    /// Reads one word of every page in ascending order.
    pub(crate) fn read_all(&self) -> u64 {
        let mut sum = 0_u64;
        for page in 0..self.pages {
            sum = sum.wrapping_add(self.read_page(page));
        }
        sum
    }

    /// Locks all of it in memory.
    pub(crate) fn lock(&self) -> Result<(), Stop> {
        // SAFETY: the range is this mapping.
        let refused = unsafe { libc::mlock(self.start.as_ptr().cast(), self.bytes()) };
        if refused == 0 {
            Ok(())
        } else {
            Err(Stop::last(format!(
                "cannot lock {} (are RLIMIT_MEMLOCK and the memory limit large enough?)",
                self.size()
            )))
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own and hands out no references to its bytes; touches borrow it (`Touch`), and
        // every other use of a raw pointer into it is unsafe code that has the value at hand.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes()) };
    }
}
