//! `/proc/kpageflags` and `/proc/kpagecount`: what a physical page is (Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;

use serde::{Deserialize, Serialize};

use crate::ProbeError;

/// The bits that are told, by name (include/uapi/linux/kernel-page-flags.h).
pub const FLAG_NAMES: &[(u32, &str)] = &[
    (0, "locked"),
    (2, "referenced"),
    (3, "uptodate"),
    (4, "dirty"),
    (5, "lru"),
    (6, "active"),
    (7, "slab"),
    (8, "writeback"),
    (9, "reclaim"),
    (10, "buddy"),
    (11, "mmap"),
    (12, "anon"),
    (13, "swapcache"),
    (14, "swapbacked"),
    (15, "compound-head"),
    (16, "compound-tail"),
    (17, "hugetlb"),
    (18, "unevictable"),
    (20, "nopage"),
    (21, "ksm"),
    (22, "thp"),
    (23, "offline"),
    (24, "zero-page"),
    (25, "idle"),
    (26, "page-table"),
];

/// The flags of one physical page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PageFlags(pub u64);

impl PageFlags {
    /// Whether the flag of this name in [`FLAG_NAMES`] is set; an unknown name is never set.
    pub fn has(self, name: &str) -> bool {
        FLAG_NAMES
            .iter()
            .any(|&(bit, known)| known == name && self.0 >> bit & 1 == 1)
    }

    /// Part of a transparent huge page, of any size.
    pub const fn transparent_huge(self) -> bool {
        self.0 >> 22 & 1 == 1
    }

    /// On an LRU list.
    pub const fn lru(self) -> bool {
        self.0 >> 5 & 1 == 1
    }

    /// On an active list.
    pub const fn active(self) -> bool {
        self.0 >> 6 & 1 == 1
    }

    /// Referenced since its flag was last cleared.
    pub const fn referenced(self) -> bool {
        self.0 >> 2 & 1 == 1
    }
}

/// The open files that tell of physical pages; root only.
#[derive(Debug)]
pub struct PhysicalPage {
    flags: File,
    counts: File,
}

impl PhysicalPage {
    /// Opens both files.
    pub fn open() -> Result<Self, ProbeError> {
        let open = |path: &str| {
            File::open(path).map_err(|error| {
                ProbeError::unsupported(path, format!("it could not be opened ({error}); it needs root and CONFIG_PROC_PAGE_MONITOR"))
            })
        };
        Ok(Self {
            flags: open("/proc/kpageflags")?,
            counts: open("/proc/kpagecount")?,
        })
    }

    /// Flags of a frame; `None` where there is no such frame.
    pub fn flags(&self, frame: u64) -> Option<PageFlags> {
        word(&self.flags, frame).map(PageFlags)
    }

    /// How often a frame is mapped; `None` where there is no such frame.
    pub fn mappings(&self, frame: u64) -> Option<u64> {
        word(&self.counts, frame)
    }
}

fn word(file: &File, frame: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    let length = rustix::io::pread(file, &mut bytes, frame.checked_mul(8)?).ok()?;
    (length == 8).then(|| u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{PageEntry, Pagemap};

    #[test]
    fn names_and_shortcuts_agree() {
        let flags = PageFlags(1 << 22 | 1 << 5 | 1 << 2);
        assert!(flags.has("thp") && flags.transparent_huge());
        assert!(flags.lru() && flags.referenced() && !flags.active());
        assert!(!flags.has("no-such-flag"));
    }

    #[test]
    fn root_sees_that_a_written_page_is_anonymous() {
        let mut memory = vec![0_u8; 4 * 4096];
        let address = memory.as_ptr() as u64 + 4096;
        memory[4096] = 1;
        let mut entry = [PageEntry::default()];
        Pagemap::open(None)
            .unwrap()
            .read(address, &mut entry)
            .unwrap();
        let (Ok(pages), Some(frame)) = (PhysicalPage::open(), entry[0].frame()) else {
            println!("skipped: page frames are shown to root only");
            return;
        };
        assert!(pages.flags(frame).unwrap().has("anon"));
        assert!(pages.mappings(frame).unwrap() >= 1);
        assert_eq!(pages.flags(u64::MAX), None);
    }
}
