//! `/proc/self/pagemap`: which pages are in memory, and the swap slots of swapped-out pages.
//!
//! Format: Linux Documentation/admin-guide/mm/pagemap.rst.

use std::fs::File;
use std::io;

use pagetide_quantity::PAGE_SIZE;
use rustix::io::Errno;

/// The 64-bit entry of a page in the page map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(pub u64);

impl Entry {
    /// Returns true if the page is mapped to a page frame in memory.
    pub const fn present(self) -> bool {
        self.0 >> 63 != 0
    }

    /// Returns the page frame number; `None` without `CAP_SYS_ADMIN` or if the page is not present.
    pub const fn frame(self) -> Option<u64> {
        let frame = self.0 & ((1 << 55) - 1);
        if self.present() && frame != 0 {
            Some(frame)
        } else {
            None
        }
    }

    /// Returns true if the page table entry is a swap entry; the page may still be in the swap cache.
    pub const fn swapped(self) -> bool {
        self.0 >> 62 & 1 != 0
    }

    /// Returns the number of the swap area, and the page's offset in it in pages; both are zero without
    /// `CAP_SYS_ADMIN`. `None` if the page is not swapped out.
    pub const fn place(self) -> Option<(u64, u64)> {
        if self.swapped() {
            Some((self.0 & 31, self.0 >> 5 & ((1 << 50) - 1)))
        } else {
            None
        }
    }
}

/// The open page map of this process.
#[derive(Debug)]
pub struct PageMap(File);

impl PageMap {
    /// Opens the page map of this process.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/self/pagemap").map(Self)
    }

    /// Calls `each` with the index and the entry of every page, for `count` pages from `address` on in ascending order.
    /// Reads at most as many entries at once as fit into `buffer`.
    pub fn each(
        &self,
        address: usize,
        count: u64,
        buffer: &mut [u64],
        mut each: impl FnMut(u64, Entry),
    ) -> io::Result<()> {
        let first = address as u64 / PAGE_SIZE;
        let mut page = 0;
        while page < count {
            let batch =
                usize::try_from(count - page).map_or(buffer.len(), |left| left.min(buffer.len()));
            // SAFETY: the buffer's words are plain memory of eight bytes each, and any bytes are a word.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<u8>(), batch * 8)
            };
            let read = match rustix::io::pread(&self.0, bytes, (first + page) * 8) {
                Err(Errno::INTR) => continue,
                read => read? / 8,
            };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            for entry in &buffer[..read] {
                each(page, Entry(*entry));
                page += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mapping, Source};

    #[test]
    fn touched_pages_are_present_and_others_are_not() {
        let mapping = Mapping::new(Source::Private, 3000 * 4096).unwrap();
        mapping.advise(0, 3000 * 4096, libc::MADV_NOHUGEPAGE);
        for page in (0..3000).step_by(3) {
            mapping.write(page * 4096, &[1]);
        }
        let mut seen = 0;
        PageMap::open()
            .unwrap()
            .each(
                mapping.start().addr(),
                3000,
                &mut [0; 512],
                |page, entry| {
                    assert_eq!(entry.present(), page % 3 == 0, "page {page}");
                    seen += 1;
                },
            )
            .unwrap();
        assert_eq!(seen, 3000);
    }

    #[test]
    fn swap_entries_tell_area_and_offset() {
        let entry = Entry(1 << 62 | 77 << 5 | 3);
        assert_eq!(entry.place(), Some((3, 77)));
        assert!(!entry.present());
        assert_eq!(entry.frame(), None);
    }

    #[test]
    fn a_page_in_memory_has_a_frame_unless_it_is_hidden() {
        assert_eq!(Entry(1 << 63 | 1 << 55 | 0x1234).frame(), Some(0x1234));
        assert_eq!(Entry(1 << 63).frame(), None);
    }
}
