//! Which pages of a mapping are in memory, and where on the swap device the others lie.
//!
//! Format: Linux Documentation/admin-guide/mm/pagemap.rst.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::error::Stop;
use crate::harness::Locked;
use crate::mapping::Mapping;
use crate::number;

/// Entries read at a time: 8 KiB.
const BATCH: usize = 1024;

/// One page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(u64);

impl Entry {
    /// Whether it is mapped to a page in memory.
    pub(crate) const fn present(self) -> bool {
        self.0 >> 63 != 0
    }

    /// Its page frame, where the process may know it (`CAP_SYS_ADMIN`).
    pub(crate) const fn frame(self) -> Option<u64> {
        let frame = self.0 & ((1 << 55) - 1);
        if self.present() && frame != 0 {
            Some(frame)
        } else {
            None
        }
    }

    /// Whether it lies in swap (its page may still be in the swap cache).
    pub(crate) const fn swapped(self) -> bool {
        self.0 >> 62 & 1 != 0
    }

    /// Swap area and offset in pages; zeros where the process may not know.
    pub(crate) const fn place(self) -> Option<(u64, u64)> {
        if self.swapped() {
            Some((self.0 & 31, self.0 >> 5 & ((1 << 50) - 1)))
        } else {
            None
        }
    }
}

/// This process's page map.
pub(crate) struct PageMap {
    file: File,
    buffer: Locked<u64>,
}

impl PageMap {
    /// Opens it.
    pub(crate) fn open() -> Result<Self, Stop> {
        let file = File::open("/proc/self/pagemap")
            .map_err(Stop::system("cannot read /proc/self/pagemap"))?;
        Ok(Self {
            file,
            buffer: Locked::new(BATCH)?,
        })
    }

    /// Calls `each` with every page of `mapping` in ascending order.
    pub(crate) fn each(
        &mut self,
        mapping: &Mapping,
        mut each: impl FnMut(u64, Entry),
    ) -> Result<(), Stop> {
        let first = mapping.start().addr() as u64 / 4096;
        let mut page = 0;
        while page < mapping.pages() {
            let count = number::index(mapping.pages() - page).min(BATCH);
            // SAFETY: `count` is at most BATCH, the number of the buffer's words, which are initialised, eight bytes each, and
            // borrowed exclusively with `self`; any bytes are a valid word.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(self.buffer.as_mut_ptr().cast::<u8>(), count * 8)
            };
            self.file
                .read_exact_at(bytes, (first + page) * 8)
                .map_err(Stop::system("cannot read /proc/self/pagemap"))?;
            for entry in &self.buffer[..count] {
                each(page, Entry(*entry));
                page += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Pages;

    use super::*;

    #[test]
    fn touched_pages_are_present_and_others_are_not() {
        let mapping = Mapping::anonymous(Pages(3000)).unwrap();
        for page in (0..3000).step_by(3) {
            // SAFETY: the page lies within the mapping.
            unsafe { mapping.page(page).write_volatile(1) };
        }
        let mut seen = 0;
        PageMap::open()
            .unwrap()
            .each(&mapping, |page, entry| {
                assert_eq!(entry.present(), page % 3 == 0, "page {page}");
                seen += 1;
            })
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
