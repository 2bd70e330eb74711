//! A mapping of the workload: address space whose pages are touched, filled and unmapped.

// Pages have a larger alignment than any word.
#![allow(clippy::cast_ptr_alignment)]

use std::fs::File;
use std::os::fd::AsFd;

use pagetide_quantity::{Bytes, Pages};
use pagetide_system::{Mapping as Memory, Source};

use crate::error::Stop;
use crate::fill::Filler;
use crate::number;
use crate::page::PAGE;

/// Address range of the workload, in pages; unmapped on drop.
pub(crate) struct Mapping {
    memory: Memory,
    pages: u64,
}

impl Mapping {
    /// Maps anonymous memory with MADV_NOHUGEPAGE, because the availability of huge pages depends on chance.
    pub(crate) fn anonymous(pages: Pages) -> Result<Self, Stop> {
        let mapping = Self::map(pages, Source::Private, libc::MAP_NORESERVE)?;
        mapping.advise(libc::MADV_NOHUGEPAGE);
        Ok(mapping)
    }

    /// Maps anonymous memory without any madvise.
    pub(crate) fn without_advice(pages: Pages) -> Result<Self, Stop> {
        Self::map(pages, Source::Private, libc::MAP_NORESERVE)
    }

    /// Maps anonymous memory that may have huge pages, aligned to `align` bytes (a power of two).
    pub(crate) fn aligned(pages: Pages, align: u64) -> Result<Self, Stop> {
        let slack = Pages(pages.0 + align / PAGE as u64);
        let whole = Self::map(slack, Source::Private, libc::MAP_NORESERVE)?;
        let address = whole.start().addr() as u64;
        let before = number::index(address.next_multiple_of(align) - address);
        let size = number::index(pages.bytes().0);
        Ok(Self {
            memory: whole.memory.part(before, size),
            pages: pages.0,
        })
    }

    /// Maps shared anonymous memory, populated at once, for words that processes share.
    pub(crate) fn shared(pages: Pages) -> Result<Self, Stop> {
        Self::map(pages, Source::Shared, libc::MAP_POPULATE)
    }

    /// Maps shared anonymous memory whose pages are allocated when they are first touched.
    pub(crate) fn shared_later(pages: Pages) -> Result<Self, Stop> {
        Self::map(pages, Source::Shared, libc::MAP_NORESERVE)
    }

    /// Maps the first `pages` pages of a file or of a packet ring, shared and writable.
    pub(crate) fn file(file: &impl AsFd, pages: Pages) -> Result<Self, Stop> {
        Self::map(pages, Source::file(file), 0)
    }

    /// Maps the first `pages` pages of a file, and returns an error of the operating system unchanged. `whole` must be
    /// true if the file is at least that long. If it is false, the call fails, because touching pages after the end of
    /// the file would raise SIGBUS.
    pub(crate) fn of_file(
        file: &File,
        pages: Pages,
        writable: bool,
        whole: bool,
    ) -> std::io::Result<Self> {
        if !whole {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let source = if writable {
            Source::file(file)
        } else {
            Source::ReadOnly(file.as_fd(), 0)
        };
        let memory = Memory::new(source, number::index(pages.bytes().0))?;
        let pages = pages.0;
        Ok(Self { memory, pages })
    }

    fn map(pages: Pages, source: Source<'_>, flags: libc::c_int) -> Result<Self, Stop> {
        let memory = Memory::with(source, number::index(pages.bytes().0), flags)
            .map_err(Stop::system(format!("cannot map {}", pages.bytes())))?;
        let pages = pages.0;
        Ok(Self { memory, pages })
    }

    /// Calls madvise(2) for the whole mapping. Returns false if the kernel refuses.
    pub(crate) fn advise(&self, advice: libc::c_int) -> bool {
        self.advise_part(0, self.pages, advice)
    }

    /// Calls madvise(2) for `count` pages from page `from`. Returns false if the kernel refuses.
    pub(crate) fn advise_part(&self, from: u64, count: u64, advice: libc::c_int) -> bool {
        if from.saturating_add(count) > self.pages {
            return false;
        }
        let bytes = |pages| number::index(Pages(pages).bytes().0);
        self.memory.advise(bytes(from), bytes(count), advice)
    }

    /// Returns the number of pages in the mapping.
    pub(crate) const fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the size of the mapping in bytes, as an index.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.length()
    }

    /// Returns the size of the mapping.
    pub(crate) const fn size(&self) -> Bytes {
        Pages(self.pages).bytes()
    }

    /// Returns the address of the first byte of the mapping.
    pub(crate) const fn start(&self) -> *mut u8 {
        self.memory.start()
    }

    /// Returns the address of a page of the mapping. Panics if the page begins beyond the end of the mapping.
    pub(crate) fn page(&self, page: u64) -> *mut u8 {
        self.memory.at(number::index(Pages(page).bytes().0))
    }

    /// Fills `count` pages from page `from` on in ascending order.
    pub(crate) fn fill(&self, filler: &Filler, from: u64, count: u64) {
        for page in from..from.saturating_add(count).min(self.pages) {
            self.fill_page(filler, page);
        }
    }

    /// Fills one page. Panics if the page is outside of the mapping.
    pub(crate) fn fill_page(&self, filler: &Filler, page: u64) {
        assert!(page < self.pages, "page {page} is outside of the mapping");
        // SAFETY: the page lies within the mapping, and workload memory is reached through raw pointers only, so that
        // no reference to it exists.
        unsafe { filler.page(self.page(page), page) }
    }

    /// Reads one word of a page. Panics if the page is outside of the mapping.
    pub(crate) fn read_page(&self, page: u64) -> u64 {
        assert!(page < self.pages, "page {page} is outside of the mapping");
        // SAFETY: the page lies within the mapping.
        unsafe { self.page(page).cast::<u64>().read_volatile() }
    }

    /// Writes one word of a page. Panics if the page is outside of the mapping.
    pub(crate) fn write_word(&self, page: u64, word: u64) {
        assert!(page < self.pages, "page {page} is outside of the mapping");
        // SAFETY: the page lies within the mapping.
        unsafe { self.page(page).cast::<u64>().write_volatile(word) }
    }

    /// Copies a page to a buffer. Panics if the page is outside of the mapping, or if the buffer is smaller than a page.
    pub(crate) fn copy_out(&self, page: u64, buffer: &mut [u8]) {
        assert!(
            page < self.pages && buffer.len() >= PAGE,
            "no room for page {page}"
        );
        // SAFETY: the page lies within the mapping, and the buffer is outside of it and large enough.
        unsafe { std::ptr::copy_nonoverlapping(self.page(page), buffer.as_mut_ptr(), PAGE) };
        std::hint::black_box(buffer);
    }

    /// Reads one word of every page in ascending order and returns their sum.
    pub(crate) fn read_all(&self) -> u64 {
        let mut sum = 0_u64;
        for page in 0..self.pages {
            sum = sum.wrapping_add(self.read_page(page));
        }
        sum
    }

    /// Locks the whole mapping in memory. Fails if the kernel refuses.
    pub(crate) fn lock(&self) -> Result<(), Stop> {
        self.memory.lock(0).map_err(Stop::system(format!(
            "cannot lock {} (are RLIMIT_MEMLOCK and the memory limit large enough?)",
            self.size()
        )))
    }
}
