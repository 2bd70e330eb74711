//! `/proc/PID/pagemap`: one 64-bit entry for each virtual page (Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;
use std::path::PathBuf;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::ProbeError;

/// Bytes in a base page. pagetide runs on x86-64, where this is fixed.
pub const PAGE_SIZE: u64 = 4096;

/// Where a swapped page lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SwapSlot {
    /// Which swap area, in the kernel's numbering. Numbers above the last area are entries that are not on a device:
    /// pages under migration, device memory, markers.
    pub area: u8,
    /// The slot in that area, in pages from its start.
    pub offset: u64,
}

/// One virtual page as the page map tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PageEntry(pub u64);

impl PageEntry {
    /// In memory.
    pub const fn present(self) -> bool {
        self.0 >> 63 & 1 == 1
    }

    /// Swapped out, or another entry that is not present but kept (see [`SwapSlot::area`]).
    pub const fn swapped(self) -> bool {
        self.0 >> 62 & 1 == 1
    }

    /// Of a file or shared anonymous memory.
    pub const fn file_or_shared(self) -> bool {
        self.0 >> 61 & 1 == 1
    }

    /// Mapped by this process alone (since 4.2).
    pub const fn exclusive(self) -> bool {
        self.0 >> 56 & 1 == 1
    }

    /// Written since `clear_refs` (only where the kernel has `CONFIG_MEM_SOFT_DIRTY`; else always clear).
    pub const fn soft_dirty(self) -> bool {
        self.0 >> 55 & 1 == 1
    }

    /// Where it lies in swap.
    pub fn swap_slot(self) -> Option<SwapSlot> {
        self.swapped().then(|| SwapSlot {
            area: u8::try_from(self.0 & 0x1f).unwrap_or(0),
            offset: self.0 >> 5 & ((1 << 50) - 1),
        })
    }

    /// The physical frame; `None` where absent, or hidden for lack of `CAP_SYS_ADMIN` (the kernel then shows 0).
    pub fn frame(self) -> Option<u64> {
        let frame = self.0 & ((1 << 55) - 1);
        (self.present() && frame != 0).then_some(frame)
    }
}

/// An open page map.
#[derive(Debug)]
pub struct Pagemap {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
}

/// Entries read by one system call: 64 KiB of them cover 32 MiB of memory.
const BATCH: usize = 8192;

impl Pagemap {
    /// The page map of a process, or of this one.
    pub fn open(pid: Option<u32>) -> Result<Self, ProbeError> {
        let path = match pid {
            Some(pid) => PathBuf::from(format!("/proc/{pid}/pagemap")),
            None => PathBuf::from("/proc/self/pagemap"),
        };
        let file = File::open(&path).map_err(|error| ProbeError::io("open", &path, error))?;
        Ok(Self {
            file,
            path,
            buffer: vec![0; BATCH * 8],
        })
    }

    /// Reads the entries of consecutive pages from the one that contains `address`; gives how many could be read, fewer
    /// than asked only at the end of the address space. Allocates nothing.
    pub fn read(&mut self, address: u64, entries: &mut [PageEntry]) -> Result<usize, ProbeError> {
        let mut done = 0;
        for batch in entries.chunks_mut(BATCH) {
            let wanted = batch.len() * 8;
            let page =
                (address / PAGE_SIZE).saturating_add(u64::try_from(done).unwrap_or(u64::MAX));
            let mut filled = 0;
            while filled < wanted {
                let offset = page
                    .saturating_mul(8)
                    .saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
                match rustix::io::pread(&self.file, &mut self.buffer[filled..wanted], offset) {
                    Ok(0) => break,
                    Ok(more) => filled += more,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(ProbeError::io("read", &self.path, error)),
                }
            }
            for (entry, bytes) in batch.iter_mut().zip(self.buffer[..filled].chunks_exact(8)) {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                *entry = PageEntry(u64::from_ne_bytes(word));
            }
            done += filled / 8;
            if filled < wanted {
                break;
            }
        }
        Ok(done)
    }

    /// The file, for [`super::PageScan`].
    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_where_the_kernel_documents_them() {
        let swapped = PageEntry(1 << 62 | 12_345 << 5 | 0b11);
        assert!(swapped.swapped() && !swapped.present());
        assert_eq!(
            swapped.swap_slot(),
            Some(SwapSlot {
                area: 3,
                offset: 12_345
            })
        );
        assert_eq!(swapped.frame(), None);
        let present = PageEntry(1 << 63 | 1 << 56 | 1 << 55 | 0x4d);
        assert_eq!(present.frame(), Some(0x4d));
        assert!(present.exclusive() && present.soft_dirty() && !present.file_or_shared());
        assert_eq!(present.swap_slot(), None);
    }

    #[test]
    fn a_written_page_is_present_and_an_untouched_one_is_not() {
        let pages = 64;
        // A mapping of its own: memory of the heap may have been used before.
        let memory = {
            use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
            // SAFETY: a new private mapping; it is left to the process' end.
            unsafe {
                mmap_anonymous(
                    std::ptr::null_mut(),
                    pages * 4096,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::PRIVATE,
                )
            }
            .unwrap()
            .cast::<u8>()
        };
        // SAFETY: the sixth page lies within the mapping.
        unsafe { memory.add(5 * 4096).write(1) };
        let mut map = Pagemap::open(None).unwrap();
        let mut entries = vec![PageEntry::default(); pages];
        assert_eq!(map.read(memory as u64, &mut entries).unwrap(), pages);
        assert!(entries[5].present());
        assert!(!entries[40].present() && !entries[40].swapped());
    }
}
