//! Lists the mappings of a task's address space, by the kernel's own structures.
//!
//! A mapping is a `struct vm_area_struct` in the maple tree of the address space. A file's path is found from its
//! `struct dentry` upwards. Source: Linux `include/linux/maple_tree.h`, `lib/maple_tree.c`, `include/linux/mm_types.h`.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::form::MAX_NAME;
use crate::format::{
    AT_ARANGE_PIVOT, AT_ARANGE_SLOT, AT_BRK, AT_BRK_START, AT_DENTRY, AT_END, AT_FILE, AT_MM,
    AT_NAME, AT_OFFSET, AT_PARENT, AT_PIVOT, AT_ROOT, AT_SLOT, AT_STACK, AT_STACK_START, AT_START,
    AT_VDSO, KERNEL, PLACES,
};

/// Size of a page.
const PAGE: u64 = 4096;
/// Maximum number of levels of a maple tree, of folders of a path, and of mappings that are listed in all.
const MAX_LEVELS: u32 = 12;
const MAX_FOLDERS: usize = 64;
const MAX_MAPPINGS: usize = 1 << 16;
/// Maximum size of a file's name in bytes. Source: Linux `include/uapi/linux/limits.h` (`NAME_MAX`).
const MAX_FILE_NAME: u64 = 255;

/// Type of a node of a maple tree whose slots are entries.
const LEAF: u64 = 1;
/// Type of a node of a maple tree whose slots are nodes.
const RANGE: u64 = 2;
/// The same, with the size of the largest gap below each slot.
const ARANGE: u64 = 3;

/// A mapping of an address space.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Number of its first page.
    pub first: u64,
    /// Number of its pages.
    pub pages: u64,
    /// For a mapping of a file, the page of the file to which the first page belongs.
    pub offset: u64,
    /// Path of its file; otherwise `[heap]`, `[stack]` or `[vdso]`; empty for other anonymous memory.
    pub name: Vec<u8>,
}

/// Places of members in the kernel's structures, in the order of [`PLACES`].
pub type Places = [u64; PLACES.len()];

/// What identifies a mapping that was listed: address space, start, end, offset and file.
type Key = (u32, u64, u64, u64, u64);

/// Finds mappings that were not listed before.
pub struct Mappings {
    pub places: Places,
    listed: BTreeSet<Key>,
}

/// Reads the kernel's memory. Both functions return `None` for an address without memory.
pub trait Memory {
    fn number(&self, address: u64) -> Option<u64>;
    fn byte(&self, address: u64) -> Option<u8>;
}

impl Mappings {
    pub const fn new(places: Places) -> Self {
        Self {
            places,
            listed: BTreeSet::new(),
        }
    }

    /// Reads the member with this index in [`PLACES`] of the structure at an address.
    fn member(&self, memory: &impl Memory, address: u64, which: usize) -> Option<u64> {
        memory.number(address.checked_add(self.places[which])?)
    }

    /// Lists the mappings of the task whose stack pointer is saved at `saved` that are new since the last list of this
    /// address space.
    pub fn list(&mut self, memory: &impl Memory, space: u32, saved: u64) -> Vec<Mapping> {
        let mut found = Vec::new();
        let task = saved.wrapping_sub(self.places[AT_STACK]);
        let mm = self.member(memory, task, AT_MM);
        // A thread of the kernel has none.
        if let Some(mm @ KERNEL..) = mm
            && let Some(root) = self.member(memory, mm, AT_ROOT)
        {
            let mut areas = Vec::new();
            self.walk(memory, root, u64::MAX, MAX_LEVELS, &mut areas);
            for area in areas {
                let key = self.key(memory, space, area);
                if let Some(key) = key
                    && self.listed.len() < MAX_MAPPINGS
                    && self.listed.insert(key)
                {
                    found.push(self.mapping(memory, mm, key));
                }
            }
        }
        found
    }

    /// Adds the addresses of all areas below a node of a maple tree. `max` is the largest address of the node.
    fn walk(&self, memory: &impl Memory, node: u64, max: u64, levels: u32, areas: &mut Vec<u64>) {
        let Some(levels) = levels.checked_sub(1) else {
            return;
        };
        let kind = (node >> 3) & 0xf;
        let (pivots, slots) = match kind {
            LEAF | RANGE => (self.places[AT_PIVOT], self.places[AT_SLOT]),
            ARANGE => (self.places[AT_ARANGE_PIVOT], self.places[AT_ARANGE_SLOT]),
            _ => return,
        };
        let base = node & !0xff;
        let count = slots.saturating_sub(pivots) / 8;
        for at in 0..=count {
            let Some(slot) = memory.number(base + slots + 8 * at) else {
                return;
            };
            // The last slot in use has no pivot, or that of the node itself.
            let pivot = (at < count).then(|| memory.number(base + pivots + 8 * at));
            let pivot = pivot.flatten().filter(|pivot| *pivot != 0 || at == 0);
            let end = pivot.unwrap_or(max);
            if slot & KERNEL != 0 {
                if kind != LEAF {
                    self.walk(memory, slot, end, levels, areas);
                } else if slot % 4 == 0 && areas.len() < MAX_MAPPINGS {
                    areas.push(slot);
                }
            }
            if end >= max {
                return;
            }
        }
    }

    fn key(&self, memory: &impl Memory, space: u32, area: u64) -> Option<Key> {
        let member = |which| self.member(memory, area, which);
        let (start, end) = (member(AT_START)?, member(AT_END)?);
        let is_area = start < end && end < KERNEL && start % PAGE == 0 && end % PAGE == 0;
        is_area.then_some((space, start, end, member(AT_OFFSET)?, member(AT_FILE)?))
    }

    fn mapping(&self, memory: &impl Memory, mm: u64, key: Key) -> Mapping {
        let (_, start, end, offset, file) = key;
        let of_mm = |which| self.member(memory, mm, which).unwrap_or(0);
        let special: &[u8] = if start <= of_mm(AT_BRK) && end > of_mm(AT_BRK_START) {
            b"[heap]"
        } else if (start..end).contains(&of_mm(AT_STACK_START)) {
            b"[stack]"
        } else if start == of_mm(AT_VDSO) {
            b"[vdso]"
        } else {
            b""
        };
        Mapping {
            first: start / PAGE,
            pages: (end - start) / PAGE,
            offset: if file == 0 { 0 } else { offset },
            name: match file {
                0 => special.to_vec(),
                _ => self.path(memory, file),
            },
        }
    }

    /// Path of a file in its file system.
    fn path(&self, memory: &impl Memory, file: u64) -> Vec<u8> {
        let mut names = Vec::new();
        let mut dentry = self.member(memory, file, AT_DENTRY);
        while let Some(entry @ KERNEL..) = dentry
            && names.len() < MAX_FOLDERS
        {
            let start = self.member(memory, entry, AT_NAME).unwrap_or(0);
            let bytes = (0..MAX_FILE_NAME).map_while(|at| memory.byte(start.checked_add(at)?));
            let name: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
            let parent = self.member(memory, entry, AT_PARENT);
            names.push(name);
            if parent == Some(entry) {
                break;
            }
            dentry = parent;
        }
        // The outermost name is that of the file system's root, or of a file without a folder.
        if names.len() > 1 && names.last().is_some_and(|name| name == b"/") {
            names.pop();
            names.push(Vec::new());
        }
        names.reverse();
        let path = names.join(&b'/');
        // Of a longer path, the end is kept.
        let start = path.len().saturating_sub(MAX_NAME);
        path.get(start..).unwrap_or_default().to_vec()
    }
}
