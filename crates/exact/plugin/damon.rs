//! Reads what DAMON, the kernel's monitor of accesses, saw of physical memory, and which pages of programs this is.
//!
//! DAMON adds up the accesses that it saw once in an interval. After that, each region has the sum as its last number of
//! accesses, and starts again at zero. Source: Linux `mm/damon/core.c`, `mm/damon/paddr.c` and `include/linux/damon.h`.

use alloc::vec::Vec;

use crate::format::{
    AT_ACCESSES, AT_ADDRESSES, AT_DATA, AT_INTERVAL, AT_LAST_ACCESSES, AT_MM, AT_REGION_LIST,
    AT_REGIONS, AT_STACK, AT_TABLE, AT_TARGET_LIST, AT_TARGET_PID, AT_TARGETS, AT_WORKER, KERNEL,
    NEEDED, NO_PLACE,
};
use crate::mappings::{Memory, Places};

/// Maximum number of regions that are read.
const MAX_REGIONS: usize = 10_000;
/// Size of a page.
const PAGE: u64 = 4096;
/// Levels of a page table, and the number of bits of an address for each. Source: Intel SDM, volume 3, 4.5.
const LEVELS: u32 = 4;
const LEVEL_BITS: u32 = 9;
/// Bits of an entry of a page table: the page is present; the entry is a large page; the physical address.
const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Physical memory that DAMON saw as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address, and the address after the last one.
    pub start: u64,
    pub end: u64,
    pub accesses: u64,
}

/// What DAMON saw up to the last time it added up.
#[derive(Debug)]
pub struct View {
    /// Time between two sums in nanoseconds.
    pub interval: u64,
    /// True if DAMON has seen no access since it added up.
    pub is_fresh: bool,
    pub regions: Vec<Region>,
}

fn member(memory: &impl Memory, places: &Places, address: u64, which: usize) -> Option<u64> {
    memory.number(address.checked_add(places[which])?)
}

/// Addresses of the elements of a list. `link` is the place of the list's links in an element.
fn list(memory: &impl Memory, head: u64, link: u64) -> Vec<u64> {
    let mut all = Vec::new();
    let mut next = memory.number(head);
    while let Some(at @ KERNEL..) = next
        && at != head
        && all.len() < MAX_REGIONS
    {
        all.push(at.wrapping_sub(link));
        next = memory.number(at);
    }
    all
}

/// Reads what the running thread of DAMON saw. `saved` is the address at which its stack pointer is saved. `None` if the
/// task is no such thread, if it watches processes, or if the kernel has no DAMON.
pub fn view(memory: &impl Memory, places: &Places, saved: u64) -> Option<View> {
    if places[NEEDED..].contains(&NO_PLACE) {
        return None;
    }
    let of = |address, which| member(memory, places, address, which);
    let task = saved.wrapping_sub(places[AT_STACK]);
    let context = of(of(task, AT_WORKER)?, AT_DATA)?;
    let mut view = View {
        interval: of(context, AT_INTERVAL)?.saturating_mul(1000),
        is_fresh: true,
        regions: Vec::new(),
    };
    let targets = context.checked_add(places[AT_TARGETS])?;
    for target in list(memory, targets, places[AT_TARGET_LIST]) {
        if of(target, AT_TARGET_PID)? != 0 {
            return None;
        }
        let head = target.checked_add(places[AT_REGIONS])?;
        for region in list(memory, head, places[AT_REGION_LIST]) {
            let low = |which| Some(of(region, which)? & 0xffff_ffff);
            view.is_fresh &= low(AT_ACCESSES)? == 0;
            view.regions.push(Region {
                start: of(region, AT_ADDRESSES)?,
                end: memory.number(region.checked_add(places[AT_ADDRESSES] + 8)?)?,
                accesses: low(AT_LAST_ACCESSES)?,
            });
        }
    }
    Some(view)
}

/// Lists the pages of a task's address space that are in regions with accesses, as first page and number of pages.
/// `direct` is the address at which the kernel maps all physical memory.
pub fn pages(
    memory: &impl Memory,
    places: &Places,
    saved: u64,
    direct: u64,
    regions: &[Region],
) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let task = saved.wrapping_sub(places[AT_STACK]);
    let mm = member(memory, places, task, AT_MM).filter(|mm| *mm >= KERNEL);
    let table = mm.and_then(|mm| member(memory, places, mm, AT_TABLE));
    let mut take = |page: u64, physical: u64| {
        let has =
            |region: &Region| region.accesses > 0 && (region.start..region.end).contains(&physical);
        if !regions.iter().any(has) {
            return;
        }
        match runs.last_mut() {
            Some((first, count)) if *first + *count == page => *count += 1,
            _ => runs.push((page, 1)),
        }
    };
    if let Some(table) = table {
        walk(memory, direct, table, LEVELS - 1, 0, &mut take);
    }
    runs
}

/// Calls `take` with number and physical address of each page below a table of the level `level`; the lowest is 0. `first`
/// is the number of the first page below this table.
fn walk(
    memory: &impl Memory,
    direct: u64,
    table: u64,
    level: u32,
    first: u64,
    take: &mut impl FnMut(u64, u64),
) {
    // The upper half of the highest table belongs to the kernel.
    let entries = if level == LEVELS - 1 { 256 } else { 512 };
    let each = 1 << (LEVEL_BITS * level);
    for at in 0..entries {
        let Some(entry) = memory.number(table + 8 * at) else {
            return;
        };
        if entry & PRESENT == 0 {
            continue;
        }
        let (page, physical) = (first + at * each, entry & ADDRESS);
        if level == 0 || entry & LARGE != 0 {
            for more in 0..each {
                take(page + more, physical + PAGE * more);
            }
        } else {
            walk(memory, direct, direct + physical, level - 1, page, take);
        }
    }
}
