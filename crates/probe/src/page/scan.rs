//! The `PAGEMAP_SCAN` request (Linux 6.7): ranges of pages by category, without reading an entry for every page.

use std::os::fd::AsRawFd;

use serde::{Deserialize, Serialize};

use super::map::Pagemap;
use crate::ProbeError;

/// Properties of a page, as bits (include/uapi/linux/fs.h, `PAGE_IS_*`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Categories(pub u64);

impl Categories {
    /// Of a file.
    pub const FILE: Self = Self(1 << 2);
    /// In memory.
    pub const PRESENT: Self = Self(1 << 3);
    /// In swap.
    pub const SWAPPED: Self = Self(1 << 4);
    /// The shared page of zeros.
    pub const ZERO: Self = Self(1 << 5);
    /// Mapped by a huge page-table entry.
    pub const HUGE: Self = Self(1 << 6);
    /// Written since `clear_refs`.
    pub const SOFT_DIRTY: Self = Self(1 << 7);

    /// Whether all of `other`'s bits are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A range of pages with the same categories.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRegion {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// What its pages are.
    pub categories: Categories,
}

/// `struct pm_scan_arg` of include/uapi/linux/fs.h.
#[repr(C)]
#[derive(Debug, Default)]
struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vector: u64,
    vector_length: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `_IOWR('f', 16, struct pm_scan_arg)`: the structure is 96 bytes.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;

/// A scan over a range of addresses with a reused vector of results.
#[derive(Debug)]
pub struct PageScan {
    regions: Vec<PageRegion>,
}

impl PageScan {
    /// A scan that takes up to `capacity` regions from each system call.
    pub fn new(capacity: usize) -> Self {
        Self {
            regions: vec![PageRegion::default(); capacity.max(1)],
        }
    }

    /// Calls `each` for every range in `start..end` that has any of the categories `of`, telling those in `tell`.
    ///
    /// Says [`ProbeError::Unsupported`] on kernels before 6.7.
    pub fn each(
        &mut self,
        map: &Pagemap,
        (start, end): (u64, u64),
        of: Categories,
        tell: Categories,
        mut each: impl FnMut(PageRegion),
    ) -> Result<(), ProbeError> {
        let mut from = start;
        while from < end {
            let mut argument = ScanArgument {
                size: 96,
                start: from,
                end,
                vector: self.regions.as_mut_ptr() as u64,
                vector_length: u64::try_from(self.regions.len()).unwrap_or(1),
                category_anyof_mask: of.0,
                return_mask: tell.0,
                ..ScanArgument::default()
            };
            // SAFETY: the argument is a valid `pm_scan_arg` of the size it states, and its vector points to
            // `vector_length` regions that live and are not otherwise used for the duration of the call.
            let found =
                unsafe { libc::ioctl(map.file().as_raw_fd(), PAGEMAP_SCAN, &raw mut argument) };
            let Ok(found) = usize::try_from(found) else {
                let error = std::io::Error::last_os_error();
                return match error.raw_os_error() {
                    Some(libc::ENOTTY | libc::EINVAL) => Err(ProbeError::unsupported(
                        "PAGEMAP_SCAN",
                        "the request came with Linux 6.7; read the page map entry by entry instead",
                    )),
                    Some(libc::EINTR) => continue,
                    _ => Err(ProbeError::io("scan", "/proc/PID/pagemap", error)),
                };
            };
            for &region in self.regions.iter().take(found) {
                each(region);
            }
            // `walk_end` is where the kernel stopped; it always moves, but a loop must not depend on that.
            if argument.walk_end <= from {
                break;
            }
            from = argument.walk_end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_has_the_size_the_request_number_states() {
        assert_eq!(size_of::<ScanArgument>(), 96);
        assert_eq!(PAGEMAP_SCAN >> 16 & 0x3fff, 96);
    }

    #[test]
    fn written_pages_are_found_as_one_present_region() {
        let mut memory = vec![0_u8; 34 * 4096];
        let start = (memory.as_ptr() as usize / 4096 + 1) * 4096;
        let skip = start - memory.as_ptr() as usize;
        for page in 4..12 {
            memory[skip + page * 4096] = 1;
        }
        let map = Pagemap::open(None).unwrap();
        let mut found = Vec::new();
        let range = (start as u64, start as u64 + 32 * 4096);
        let wanted = Categories::PRESENT.and(Categories::SWAPPED);
        match PageScan::new(2).each(&map, range, wanted, wanted, |region| found.push(region)) {
            Err(ProbeError::Unsupported { why, .. }) => println!("skipped: {why}"),
            result => {
                result.unwrap();
                let present: u64 = found.iter().map(|r| (r.end - r.start) / 4096).sum();
                assert!(present >= 8, "{found:?}");
                let first = start as u64 + 4 * 4096;
                assert!(found.iter().any(|r| r.start <= first && first < r.end));
                assert!(
                    found
                        .iter()
                        .all(|r| r.categories.contains(Categories::PRESENT))
                );
            }
        }
    }
}
