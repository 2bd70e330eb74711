//! The size of the machine as its kernel sees it: the memory that the arena itself uses is not part of it.
//!
//! A kernel derives many of its limits from the memory that its page allocator manages: zswap's pool, watermarks,
//! reserves between zones, per-CPU lists, the size of a tmpfs. In a trial, the arena uses some of this memory: for the
//! ballast, and for the content of simulated disks, which is three times the workload's memory by default. A real
//! machine has neither. So these pages are subtracted from the kernel's two counts of managed memory: the count of the
//! machine, and the count of the zone. A balloon driver does the same for the pages that it holds (kernel
//! `adjust_managed_page_count`). From then on the kernel derives every limit from the right size, and `MemTotal` and
//! sysinfo(2) report this size. A setting that is a share of memory has the same effect as on a real machine.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use pagetide_quantity::{Bytes, Pages};
use pagetide_system::free::{ZONEINFO, Zone, zones};
use pagetide_system::meminfo;

use crate::error::{GuestError, io};
use crate::kernel_memory::{Copier, KernelMemory, symbols};
use crate::mount::change;
use crate::spec::MOUNT_POINT;

/// Returns the size of the machine as the kernel reports it (`MemTotal`). After the ready point, it consists of the
/// promised free memory and of the memory that the kernel and the guest program use.
pub fn of_machine() -> Result<Bytes, GuestError> {
    meminfo::amount("MemTotal").ok_or(GuestError::Unexpected {
        file: meminfo::PATH,
        what: "MemTotal",
    })
}

/// Number of pages that the arena uses in each zone, by name of the zone, such as `Node 0, zone DMA32`.
#[derive(Debug, Default)]
pub struct Held(BTreeMap<String, u64>);

impl Held {
    /// Calls `take`, which allocates memory for the arena, and returns its result. Adds the number of pages in each
    /// zone that are no longer free.
    pub fn add<T>(
        &mut self,
        take: impl FnOnce() -> Result<T, GuestError>,
    ) -> Result<T, GuestError> {
        let before = current()?;
        let taken = take()?;
        let after = current()?;
        for (zone, left) in before.iter().zip(&after) {
            let pages = zone.free.0.saturating_sub(left.free.0);
            *self.0.entry(zone.name.clone()).or_default() += pages;
        }
        Ok(taken)
    }

    /// Returns the total size of the pages that the arena uses.
    pub fn size(&self) -> Bytes {
        Pages(self.0.values().sum()).bytes()
    }

    /// Subtracts these pages from the kernel's counts of managed memory. `item` is the selector of the configuration
    /// item for [`Copier`]. Returns `None` on success. Returns the reason if the kernel lacks what is needed; the
    /// counts are then unchanged.
    pub fn take_out(&self, item: u16) -> Result<Option<String>, GuestError> {
        let zones = current()?;
        let machine = of_machine()?;
        let counts = match counts(&zones) {
            Ok(counts) => counts,
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                return Ok(Some("it lacks CONFIG_PROC_KCORE".to_owned()));
            }
            Err(why) => return Ok(Some(why.to_string())),
        };
        let copier = Copier::new(item).map_err(io("preparing copies by", "the emulator"))?;
        let set = |physical, pages| {
            copier
                .write(physical, pages)
                .map_err(io("setting", "the kernel's count of memory"))
        };
        for (zone, physical) in zones.iter().zip(counts.zones) {
            set(physical, self.left(zone))?;
        }
        let left: u64 = zones.iter().map(|zone| self.left(zone)).sum();
        let whole: u64 = zones.iter().map(|zone| zone.managed.0).sum();
        set(counts.machine, machine.pages().0 - (whole - left))?;
        self.verify(&zones, machine)?;
        Ok(None)
    }

    /// Returns the number of managed pages of a zone without the pages that the arena uses.
    fn left(&self, zone: &Zone) -> u64 {
        let held = self.0.get(&zone.name).copied().unwrap_or_default();
        zone.managed.0.saturating_sub(held)
    }

    /// Fails unless the kernel now reports the earlier sizes minus the pages that the arena uses. `before` are the
    /// earlier sizes of the zones, `machine` is the earlier size of the machine.
    fn verify(&self, before: &[Zone], machine: Bytes) -> Result<(), GuestError> {
        let after = current()?;
        let is_same = |(old, new): (&Zone, &Zone)| new.managed.0 == self.left(old);
        let taken: u64 = before
            .iter()
            .map(|zone| zone.managed.0 - self.left(zone))
            .sum();
        let is_right = after.len() == before.len()
            && before.iter().zip(&after).all(is_same)
            && of_machine()?.pages().0 == machine.pages().0 - taken;
        if is_right {
            return Ok(());
        }
        Err(io("setting", "the kernel's count of memory")(
            io::Error::other("the kernel reports another count afterwards"),
        ))
    }
}

/// Reads all zones that have memory. Free pages include those on per-CPU lists.
fn current() -> Result<Vec<Zone>, GuestError> {
    // Adds the per-CPU differences to the global counters.
    let _ = fs::write("/proc/sys/vm/stat_refresh", "1");
    let text = fs::read_to_string(ZONEINFO).map_err(io("reading", ZONEINFO))?;
    Ok(zones(&text))
}

/// Physical addresses of the kernel's counts of managed pages.
struct Counts {
    /// Physical address of the count of the whole machine.
    machine: u64,
    /// Physical address of the count of each zone, in the order of the zones.
    zones: Vec<u64>,
}

/// Finds the addresses of the kernel's counts of managed pages. Fails if one is not found. Source: kernel
/// `mm/page_alloc.c` (`_totalram_pages`; `totalram_pages` before 5.0), `include/linux/mmzone.h` (`struct pglist_data`
/// begins with its zones; in a zone `managed_pages`, `spanned_pages` and `present_pages` follow each other).
fn counts(zones: &[Zone]) -> io::Result<Counts> {
    /// Number of bytes in which the zones of a node are searched: more than they take in any configuration.
    const NODE_BYTES: usize = 16 << 10;
    let kernel = KernelMemory::open()?;
    // A kernel with NUMA has a table of pointers to its nodes. A kernel without NUMA has its single node as a variable.
    let [mut machine, table] = symbols(["_totalram_pages", "node_data"])?;
    let mut single = None;
    if machine.is_none() || table.is_none() {
        let [older, node] = symbols(["totalram_pages", "contig_page_data"])?;
        machine = machine.or(older);
        single = node;
    }
    let (Some(machine), Some(first)) = (machine, table.or(single)) else {
        return Err(io::Error::other(
            "it does not list its variables (CONFIG_KALLSYMS_ALL)",
        ));
    };
    let total: u64 = zones.iter().map(|zone| zone.managed.0).sum();
    if kernel.number(machine)? != total {
        return Err(io::Error::other(
            "its count of memory is not the sum over its zones",
        ));
    }
    let mut node_bytes = vec![0; NODE_BYTES];
    let mut found = Vec::new();
    for zone in zones {
        let node = match table {
            Some(table) => kernel.number(table + 8 * zone.node)?,
            None => first,
        };
        kernel.read(node, &mut node_bytes)?;
        let sizes = [zone.managed, zone.spanned, zone.present].map(|pages| pages.0.to_ne_bytes());
        let offset = only(&node_bytes, sizes.as_flattened())
            .ok_or_else(|| io::Error::other(format!("{} is not found in memory", zone.name)))?;
        found.push(kernel.physical(node + offset)?);
    }
    Ok(Counts {
        machine: kernel.physical(machine)?,
        zones: found,
    })
}

/// Returns the offset of `numbers` in `memory`, which is a multiple of eight. `None` if `memory` contains `numbers` at
/// no such offset, or at several.
fn only(memory: &[u8], numbers: &[u8]) -> Option<u64> {
    let mut places = memory
        .windows(numbers.len())
        .enumerate()
        .step_by(8)
        .filter(|(_, bytes)| *bytes == numbers);
    match (places.next(), places.next()) {
        (Some((place, _)), None) => u64::try_from(place).ok(),
        _ => None,
    }
}

/// Sets the size of the program's `/dev/shm` to half of the machine's memory, the kernel's default for a tmpfs. Needed
/// because `/dev/shm` was mounted before the size of the machine changed.
pub fn resize_shared_memory() {
    // Fails on a kernel without tmpfs, which has no `/dev/shm`.
    let _ = change(&format!("{MOUNT_POINT}/dev/shm"), "size=50%");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str, managed: u64) -> Zone {
        Zone {
            name: name.to_owned(),
            node: 0,
            free: Pages(0),
            managed: Pages(managed),
            spanned: Pages(managed + 10),
            present: Pages(managed + 5),
        }
    }

    #[test]
    fn held_pages_leave_the_zone_in_which_they_are() {
        let held = Held(BTreeMap::from([("DMA32".to_owned(), 60_000)]));
        assert_eq!(held.left(&zone("DMA", 3840)), 3840);
        assert_eq!(held.left(&zone("DMA32", 90_000)), 30_000);
        assert_eq!(held.left(&zone("DMA32", 50_000)), 0);
        assert_eq!(held.size(), Pages(60_000).bytes());
    }

    #[test]
    fn a_place_in_memory_is_found_only_if_it_is_the_only_one() {
        let numbers = [7_u64, 8, 9].map(u64::to_ne_bytes);
        let once = [1_u64, 7, 8, 9, 2].map(u64::to_ne_bytes);
        assert_eq!(only(once.as_flattened(), numbers.as_flattened()), Some(8));
        let twice = [7_u64, 8, 9, 7, 8, 9].map(u64::to_ne_bytes);
        assert_eq!(only(twice.as_flattened(), numbers.as_flattened()), None);
        assert_eq!(only(&[0; 64], numbers.as_flattened()), None);
    }
}
