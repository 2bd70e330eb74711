//! Ballast: locked memory that leaves the workload the specified amount of free memory, to within 128 KiB.
//!
//! Kernels differ in their own memory use: on the same machine 6.1, 6.12 and 7.2 leave 93, 84 and 73 MB free. Without a
//! ballast, a comparison would mix the kernels' memory use and their reclaim policy.

use std::fs;
use std::io;

use pagetide_quantity::{Bytes, PAGE_SIZE, Pages};
use pagetide_system::free::{ZONEINFO, Zones, zones};
use pagetide_system::{Mapping, Source};

use crate::error::{GuestError, io};

/// Maximum accepted difference between free memory and the specified amount, in bytes.
const CLOSE_BYTES: u64 = 32 * PAGE_SIZE;

/// Returns the free memory: free pages of all zones plus the pages on per-CPU lists. The kernel counts the pages on
/// these lists as used, and their number varies by up to a MiB.
pub fn free() -> Result<Bytes, GuestError> {
    // Adds the per-CPU differences to the global counters, if the kernel has this file.
    let _ = fs::write("/proc/sys/vm/stat_refresh", "1");
    let zones = Zones::now().map_err(io("reading", ZONEINFO))?;
    zones
        .all_free()
        .map(Pages::bytes)
        .ok_or(GuestError::Unexpected {
            file: ZONEINFO,
            what: "nr_free_pages",
        })
}

/// Returns the free memory of a memory node, including pages on per-CPU lists.
pub fn free_on(node: u64) -> Result<Bytes, GuestError> {
    // Adds the per-CPU differences to the global counters.
    let _ = fs::write("/proc/sys/vm/stat_refresh", "1");
    let text = fs::read_to_string(ZONEINFO).map_err(io("reading", ZONEINFO))?;
    let zones = zones(&text);
    let own = zones.iter().filter(|zone| zone.node == node);
    Ok(Pages(own.map(|zone| zone.free.0).sum()).bytes())
}

/// Drops clean page-cache pages and reclaimable slabs, after writing dirty pages, so that they do not count as used.
pub fn drop_caches() {
    // SAFETY: takes no arguments and writes no memory of this process.
    unsafe { libc::sync() };
    let _ = fs::write("/proc/sys/vm/drop_caches", "3");
}

/// Locked memory that keeps free memory at the specified amount; it can be freed.
#[derive(Debug)]
pub struct Ballast(Mapping);

/// Reserved address space whose pages are allocated and locked one by one. Allocation costs a trial very little: only
/// page faults, whose code the workload runs anyway.
#[derive(Debug)]
pub struct Reserve(Ballast);

impl Reserve {
    /// Reserves address space for `pages` pages. Allocates page tables and a page before them, not these pages.
    pub fn new(pages: u64) -> Result<Self, GuestError> {
        let reserve = Self(map(
            MemoryArea::Machine,
            Bytes((pages + 1) * PAGE_SIZE),
            libc::MLOCK_ONFAULT,
        )?);
        reserve.touch(0);
        Ok(reserve)
    }

    /// Allocates and locks `pages` of the reserved pages; must be called only once. Pages beyond the reserved space are
    /// ignored.
    pub fn take(&self, pages: u64) {
        for page in 1..=pages {
            self.touch(page);
        }
    }

    fn touch(&self, page: u64) {
        let at = usize::try_from(page * PAGE_SIZE).unwrap_or(usize::MAX);
        if at < self.0.0.length() {
            self.0.0.write(at, &[1]);
        }
    }
}

impl Ballast {
    /// Frees the memory of the ballast.
    pub fn release(self) {
        drop(self.0);
    }
}

/// The part of memory in which a ballast is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryArea {
    /// Anywhere in the machine.
    Machine,
    /// On the memory node with this number only.
    Node(u64),
}

/// Allocates `size` bytes in this place and keeps them locked until the guest ends.
fn take(place: MemoryArea, size: Bytes) -> Result<(), GuestError> {
    if size.0 > 0 {
        std::mem::forget(map(place, size, 0)?);
    }
    Ok(())
}

/// Allocates and locks `size` bytes, which must not be zero.
pub fn hold(size: Bytes) -> Result<Ballast, GuestError> {
    map(MemoryArea::Machine, size, 0)
}

/// Maps and locks `size` bytes in this place. `flags` are the flags of mlock2(2).
fn map(place: MemoryArea, size: Bytes, flags: libc::c_uint) -> Result<Ballast, GuestError> {
    let fault = || io("locking a ballast of", size.to_string());
    let length = usize::try_from(size.0).map_err(|_| fault()(io::ErrorKind::OutOfMemory.into()))?;
    let memory = Mapping::new(Source::Private, length).map_err(fault())?;
    // Children must not inherit the memory, and huge pages would make its size inexact.
    memory.advise(0, length, libc::MADV_DONTFORK);
    memory.advise(0, length, libc::MADV_NOHUGEPAGE);
    if let MemoryArea::Node(node) = place {
        let node = u32::try_from(node).unwrap_or(u32::MAX);
        memory.bind(node).map_err(fault())?;
    }
    memory.lock(flags).map_err(fault())?;
    Ok(Ballast(memory))
}

/// Locks memory until only `wanted` is free in the machine, to within [`CLOSE_BYTES`]. Fails if less is free.
pub fn leave(wanted: Bytes) -> Result<(), GuestError> {
    leave_on(MemoryArea::Machine, wanted)
}

/// Allocates and locks memory until only `wanted` is free in this place, to within [`CLOSE_BYTES`]. Fails if less is
/// free. First nearly all of the excess is allocated, then repeatedly half of the rest, because the ballast itself
/// needs page tables. Ends after 32 steps in any case.
pub fn leave_on(place: MemoryArea, wanted: Bytes) -> Result<(), GuestError> {
    const LITTLE_BYTES: u64 = 2 << 20;
    for _ in 0..32 {
        drop_caches();
        let found = match place {
            MemoryArea::Machine => free()?,
            MemoryArea::Node(node) => free_on(node)?,
        };
        if found.0 + CLOSE_BYTES < wanted.0 {
            let (wanted, found) = (wanted.0 >> 10, found.0 >> 10);
            return Err(match place {
                MemoryArea::Machine => GuestError::MemoryShort { wanted, found },
                MemoryArea::Node(node) => GuestError::NodeShort {
                    node,
                    wanted,
                    found,
                },
            });
        }
        let over = found.0.saturating_sub(wanted.0);
        if over < CLOSE_BYTES {
            return Ok(());
        }
        let step = if over > 2 * LITTLE_BYTES {
            over - LITTLE_BYTES
        } else {
            over / 2
        };
        take(place, Bytes((step / PAGE_SIZE).max(1) * PAGE_SIZE))?;
    }
    Ok(())
}
