//! Which pages the kernel maps, evicts, reads from swap and checks, from its accesses to page tables.
//!
//! A plugin cannot read the guest's memory, but it sees the addresses of the kernel's accesses. When a page fault ends,
//! the program refers to the page that was missing. The kernel has just written that page's entry, whose place in its
//! table is the lower part of the page's number (x86-64: 512 entries of 8 bytes). So the table's address belongs to the
//! upper part. From then on, each access to the table names its page. What an access means follows from the function
//! that makes it:
//!
//! - `try_to_unmap_one` removes an entry: reclaim evicts the page. Other removals are no evictions.
//! - `__swap_duplicate` writes a byte of the swap map, one for each place in swap. Called for an evicted page, it
//!   tells that page's place. Called for a page that is read (`swapcache_prepare`), it tells which page is read.
//!   Newer kernels have a table of swap with numbers of eight bytes instead, which `folio_dup_swap` and
//!   `swap_cache_alloc_folio` write through other functions.
//! - `ptep_test_and_clear_young` and walks of page tables read an entry for its accessed bit, and write it if the bit is
//!   set.
//!
//! Source: Linux `mm/rmap.c`, `mm/swapfile.c`, `mm/vmscan.c`, `arch/x86/mm/pgtable.c`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::form::{EVICTED, FAULT_FOUND, FAULT_READ, OLD, SWAPPED_IN, YOUNG};
use crate::format::{
    BIND, CHECKS, CLEARS, COUNTS, ENTERS, FAULTS, FILE, KERNEL, MAPS, PREPARES, READS, SWAPS,
    UNMAPS,
};

/// Flags that matter at the start of a function.
pub const BEGINS: u32 = FAULTS | SWAPS | FILE | READS | PREPARES | BIND | UNMAPS | CLEARS;
/// Number of pages whose entries are in one table.
const ENTRIES: u64 = 512;
/// Number of the kernel's last writes to page tables during a fault that are kept, to be compared with the page that
/// the program refers to afterwards.
const MAX_WRITES: usize = 16;
/// The missing page must be among this number of pages referenced after a fault. It need not be the first, because
/// the kernel itself refers to the program's memory before a program continues that had to wait (restartable
/// sequences).
const MAX_PAGES: u8 = 6;
/// Maximum number of entries that are checked at the same time.
const MAX_CHECKED: usize = 64;
/// Maximum number of tables and of places in swap, so that memory is bounded: tables of 64 GiB, and 64 GiB of swap.
const MAX_TABLES: usize = 1 << 15;
const MAX_PLACES: usize = 1 << 24;

/// A page of an address space.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub space: u32,
    pub number: u64,
}

/// Something that the kernel did with a page.
#[derive(Clone, Copy)]
pub struct Event {
    pub kind: u8,
    pub page: Page,
}

/// A page fault of a task, from its start to the reference that caused it.
#[derive(Clone, Copy)]
struct Fault {
    /// Number of pages that may still be the one that was missing; 0 if there is no fault.
    left: u8,
    /// Last page that was compared.
    compared: u64,
    /// True if the page had contents: it was in swap or belongs to a file.
    has_contents: bool,
    /// True if its contents were read from a device.
    reads: bool,
    writes: [u64; MAX_WRITES],
    count: usize,
}

const NO_FAULT: Fault = Fault {
    left: 0,
    compared: u64::MAX,
    has_contents: false,
    reads: false,
    writes: [0; MAX_WRITES],
    count: 0,
};

/// What the next write to the map or table of swap means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MapWrite {
    Nothing,
    /// It tells the place of the page that was evicted last.
    Binds,
    /// The page of this place is read.
    Reads,
}

/// What is known of the kernel's page tables.
pub struct Tables {
    /// First page of each table, by the table's address.
    known: BTreeMap<u64, Page>,
    /// Evicted page of each place in swap, by the address of the place in the map or table of swap.
    places: BTreeMap<u64, Page>,
    faults: Vec<Fault>,
    /// Entry that is removed, and its page.
    removed: Option<(u64, Page)>,
    /// Entries that were read to be checked and not written yet, with their pages, in the order of reading. Newer kernels
    /// look at the next entry before they finish with one.
    checked: Vec<(u64, Page)>,
    next_write: MapWrite,
    /// Number of evictions, and of those whose page is known.
    evictions: u64,
    known_evictions: u64,
    /// Flags of all functions that this kernel has.
    pub flags: u32,
}

impl Tables {
    /// Creates an empty state.
    pub const fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            places: BTreeMap::new(),
            faults: Vec::new(),
            removed: None,
            checked: Vec::new(),
            next_write: MapWrite::Nothing,
            evictions: 0,
            known_evictions: 0,
            flags: 0,
        }
    }

    /// Number of evictions of pages that are not known.
    pub const fn unknown(&self) -> u64 {
        self.evictions.saturating_sub(self.known_evictions)
    }

    /// Bit set of the kinds of events that can be recorded with this kernel's functions. A kind's number is the place
    /// of its bit.
    pub fn told(&self) -> u64 {
        let has = |flags: u32| self.flags & flags == flags;
        let learns = has(FAULTS | MAPS);
        let evictions = learns && has(UNMAPS | CLEARS);
        let faults = learns && has(SWAPS | READS);
        let reads = evictions && has(PREPARES | BIND) && self.flags & (COUNTS | ENTERS) != 0;
        let checks = learns && has(CHECKS);
        u64::from(evictions) << EVICTED
            | u64::from(faults) << FAULT_FOUND
            | u64::from(faults) << FAULT_READ
            | u64::from(reads) << SWAPPED_IN
            | u64::from(checks) << OLD
            | u64::from(checks) << YOUNG
    }

    fn fault(&mut self, task: usize) -> &mut Fault {
        if self.faults.len() <= task {
            self.faults.resize(task + 1, NO_FAULT);
        }
        &mut self.faults[task]
    }

    /// Page of an entry; `None` if its table is not known.
    fn page(&self, entry: u64) -> Option<Page> {
        let table = self.known.get(&(entry & !0xfff))?;
        Some(Page {
            space: table.space,
            number: table.number + (entry & 0xfff) / 8,
        })
    }

    /// Records that a function with these flags begins. `is_unmapping` is true if `try_to_unmap_one` calls it.
    pub fn begun(&mut self, flags: u32, task: usize, is_unmapping: bool) {
        if flags & FAULTS != 0 {
            let fault = self.fault(task);
            // A fault that had to wait for a lock begins again.
            let is_again = fault.left == MAX_PAGES;
            let before = if is_again { *fault } else { NO_FAULT };
            *fault = Fault {
                left: MAX_PAGES,
                has_contents: before.has_contents,
                reads: before.reads,
                ..NO_FAULT
            };
        }
        if flags & UNMAPS != 0 || flags & CLEARS != 0 && is_unmapping {
            self.removed = None;
            self.evictions += u64::from(flags & CLEARS != 0);
        }
        let fault = self.fault(task);
        fault.has_contents |= flags & (SWAPS | FILE) != 0;
        fault.reads |= flags & READS != 0 && fault.has_contents;
        if flags & PREPARES != 0 {
            self.next_write = MapWrite::Reads;
        } else if flags & BIND != 0 {
            self.next_write = if is_unmapping {
                MapWrite::Binds
            } else {
                MapWrite::Nothing
            };
        }
    }

    /// Records that a function with these roles accesses `size` bytes of the kernel's memory. Returns what this means.
    pub fn access(
        &mut self,
        roles: u32,
        at: u64,
        (is_store, size): (bool, u64),
        task: usize,
        is_unmapping: bool,
    ) -> Option<Event> {
        if roles & COUNTS != 0 && size == 1 && is_store {
            return self.map_write(at);
        }
        if size != 8 || !at.is_multiple_of(8) || at & KERNEL == 0 {
            return None;
        }
        if roles & ENTERS != 0 && is_store {
            return self.map_write(at);
        }
        if roles & CHECKS != 0 {
            return self.check(at, is_store);
        }
        if !is_store {
            return None;
        }
        let removes = roles & (UNMAPS | CLEARS) != 0 && is_unmapping;
        if removes {
            return self.remove(at);
        }
        if roles & MAPS != 0 {
            let fault = self.fault(task);
            if fault.left > 0 {
                fault.writes[fault.count % MAX_WRITES] = at;
                fault.count += 1;
            }
        }
        None
    }

    fn map_write(&mut self, at: u64) -> Option<Event> {
        let meaning = core::mem::replace(&mut self.next_write, MapWrite::Nothing);
        match meaning {
            MapWrite::Nothing => None,
            MapWrite::Binds => {
                match self.removed {
                    Some((_, page)) if self.places.len() < MAX_PLACES => {
                        self.places.insert(at, page);
                    }
                    _ => {
                        self.places.remove(&at);
                    }
                }
                None
            }
            MapWrite::Reads => self.places.get(&at).map(|page| Event {
                kind: SWAPPED_IN,
                page: *page,
            }),
        }
    }

    /// Records that reclaim writes an entry: it removes the page, then it writes the page's place in swap.
    fn remove(&mut self, entry: u64) -> Option<Event> {
        if self.removed.is_some_and(|(last, _)| last == entry) {
            return None;
        }
        // The function also writes variables that are no entries. A fault has shown which pages are tables.
        let page = self.page(entry)?;
        self.removed = Some((entry, page));
        self.known_evictions += 1;
        Some(Event {
            kind: EVICTED,
            page,
        })
    }

    /// Records that the accessed bit of an entry is read, or cleared if `is_store`.
    fn check(&mut self, entry: u64, is_store: bool) -> Option<Event> {
        let known = self.checked.iter().position(|(other, _)| *other == entry);
        if is_store {
            let page = self.page(entry)?;
            if let Some(known) = known {
                self.checked.remove(known);
            }
            return Some(Event { kind: YOUNG, page });
        }
        if known.is_some() {
            return None;
        }
        let page = self.page(entry)?;
        self.checked.push((entry, page));
        if self.checked.len() > MAX_CHECKED {
            return self.end_check();
        }
        None
    }

    /// The oldest check whose result is known to be that the accessed bit was not set, because no write followed.
    pub fn end_check(&mut self) -> Option<Event> {
        if self.checked.is_empty() {
            return None;
        }
        let (_, page) = self.checked.remove(0);
        Some(Event { kind: OLD, page })
    }

    /// True if a check is in progress.
    pub const fn is_checking(&self) -> bool {
        !self.checked.is_empty()
    }

    /// Records that a task refers to a page. Returns the event of a page fault if the reference ends one of a page with
    /// contents; `None` otherwise.
    pub fn refer(&mut self, page: Page, task: usize) -> Option<Event> {
        let fault = self.faults.get_mut(task).filter(|fault| fault.left > 0)?;
        if fault.compared == page.number {
            return None;
        }
        fault.compared = page.number;
        fault.left -= 1;
        let place = page.number % ENTRIES;
        let count = fault.count.min(MAX_WRITES);
        let mut is_found = false;
        for entry in fault.writes.iter().take(count) {
            if (entry & 0xfff) / 8 != place {
                continue;
            }
            is_found = true;
            if self.known.len() < MAX_TABLES || self.known.contains_key(&(entry & !0xfff)) {
                let first = Page {
                    number: page.number - place,
                    ..page
                };
                self.known.insert(entry & !0xfff, first);
            }
            if self.removed.is_some_and(|(last, _)| last == *entry) {
                self.removed = None;
            }
        }
        if !is_found {
            return None;
        }
        let Fault {
            has_contents,
            reads,
            ..
        } = core::mem::replace(fault, NO_FAULT);
        let kind = if reads { FAULT_READ } else { FAULT_FOUND };
        has_contents.then_some(Event { kind, page })
    }
}
