//! Sizes and devices of a trial, and what filling memory and moving pages on them costs, in laps.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos, PAGE_SIZE};
use pagetide_record::{MemorySpec, Subject, SwapDisk, SwapSpec};

/// Laps for translating the code of reclaim and swap when the guest first runs it.
pub(super) const PRESSURE_LAPS: f64 = 60.0;
/// Laps per first touch of a page.
pub(super) const FILL_LAPS: f64 = 0.0010;
/// Memory taken by compressed pages, relative to their compressed size.
const COMPRESSED: f64 = 1.1;
/// Fraction of swapped-in pages that are written to the disk again at the next swap-out, although they were only read.
const WRITTEN_AGAIN: f64 = 0.75;
/// Compression ratio of pages if the scenario does not state it: compressed size / original size.
pub(super) const CONTENT: f64 = 0.35;
/// Number of pages of the machine's total memory that the kernel and the guest's fixed allocations take.
const FOOTPRINT_PAGES: f64 = 56.0 * 256.0;
/// Part of [`FOOTPRINT_PAGES`] that the page allocator of the kernel manages: all but the kernel's image and the memory
/// reserved at boot.
const MANAGED_PAGES: f64 = 28.0 * 256.0;

/// Laps per page moved between memory and swap, by the way in which it is moved.
pub(super) struct Moves {
    /// Laps per page swapped out.
    pub(super) out: f64,
    /// Laps per page swapped in alone.
    pub(super) alone: f64,
    /// Laps per page swapped in by sequential access, where readahead also reads neighbouring pages.
    pub(super) in_order: f64,
}

impl Moves {
    /// Cost of moving pages to and from zram or zswap, which hold compressed pages in memory.
    pub(super) const COMPRESSED: Self = Self::new([0.0054, 0.0025, 0.0025]);

    const fn new([out, alone, in_order]: [f64; 3]) -> Self {
        Self {
            out,
            alone,
            in_order,
        }
    }

    const fn of(disk: SwapDisk) -> Self {
        Self::new(match disk {
            SwapDisk::Ssd(_) => [0.0057, 0.0195, 0.0044],
            // A process in the guest serves the disk: the number of requests is the same, but each is forwarded and
            // copied twice.
            SwapDisk::Disk(_) => [0.02, 0.02, 0.008],
        })
    }

    /// Returns the mean cost of moving pages if the fraction `share` of them moves to compressed memory and the rest to
    /// the disk.
    fn mixed(share: f64, disk: &Self) -> Self {
        let mix = |memory: f64, disk: f64| share * memory + (1.0 - share) * disk;
        let memory = Self::COMPRESSED;
        Self {
            out: mix(memory.out, disk.out),
            alone: mix(memory.alone, disk.alone),
            in_order: mix(memory.in_order, disk.in_order),
        }
    }
}

/// Sizes and devices of a trial, from which its work is computed.
pub(super) struct Sizes<'a> {
    pub(super) params: &'a BTreeMap<String, String>,
    /// Number of pages of memory available to the workload.
    pub(super) memory: f64,
    /// Cost of moving pages to and from the swap disk; `None` without a swap disk.
    pub(super) disk: Option<Moves>,
    /// True if swap is compressed in memory (zram or zswap), so that a page must be compressed again at each swap-out.
    pub(super) is_compressed: bool,
    /// Maximum size of zswap's compressed pool, in pages of memory; `None` without such a limit.
    pub(super) pool: Option<f64>,
    /// True if swap is on a rotating disk.
    pub(super) on_disk: bool,
    /// Bytes per second of the rotating disk that holds the files; `None` if the files are on another device.
    pub(super) files_rate: Option<f64>,
}

impl<'a> Sizes<'a> {
    pub(super) fn of(subject: &'a Subject) -> Self {
        let pages = |bytes: Bytes| bytes.0 as f64 / PAGE_SIZE as f64;
        let memory = match (subject.limit, subject.memory) {
            (Some(limit), _) => pages(limit),
            (None, MemorySpec::Free(free)) => pages(free),
            (None, MemorySpec::Total(total)) => (pages(total) - FOOTPRINT_PAGES).max(1.0),
        };
        let percent = || {
            let set = subject.variant.settings.get("zswap/max_pool_percent");
            set.and_then(|text| text.parse().ok()).unwrap_or(20.0)
        };
        let (is_zswap, has_zram) = match subject.swap {
            SwapSpec::Zram(_) => (false, true),
            SwapSpec::Zswap(_) => (true, false),
            SwapSpec::Tiers(tiers) => (tiers.zswap.is_some(), tiers.zrams().next().is_some()),
            SwapSpec::None | SwapSpec::Ssd(_) | SwapSpec::Disk(_) => (false, false),
        };
        Self {
            params: &subject.params,
            memory,
            // With several disks, assumes that all pages go to the last one.
            disk: subject
                .swap
                .disks(subject.swap_size)
                .last()
                .map(|(disk, _)| Moves::of(*disk)),
            is_compressed: is_zswap || has_zram,
            pool: is_zswap.then(|| percent() / 100.0 * (memory + MANAGED_PAGES)),
            on_disk: subject.swap.is_rotational(),
            files_rate: subject.files_on.disk().map(|disk| disk.rate as f64),
        }
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(1.0)
    }

    /// Returns the value of a parameter that is a size, in pages; 0 if there is no such parameter.
    pub(super) fn pages(&self, name: &str) -> f64 {
        let bytes = self.text(name).parse::<Bytes>();
        bytes.map_or(0.0, |bytes| bytes.0 as f64 / PAGE_SIZE as f64)
    }

    pub(super) fn seconds(&self, name: &str) -> f64 {
        self.text(name)
            .parse()
            .map_or(0.0, |time: Nanos| time.secs())
    }

    /// Returns the number of `pages` that fit in memory if `locked` pages are locked and pages compress to the fraction
    /// `content`. Compressed pages stay in memory.
    pub(super) fn room(&self, pages: f64, locked: f64, content: f64) -> f64 {
        let free = self.memory - kept_free(self.memory) - locked;
        if pages <= free {
            return pages;
        }
        let kept = if self.is_compressed {
            (COMPRESSED * content).min(0.95)
        } else {
            0.0
        };
        let room = (free - kept * pages) / (1.0 - kept);
        // Pages beyond a full pool are on the disk.
        let room = self.pool.map_or(room, |pool| room.max(free - pool));
        room.max(32.0)
    }

    /// Returns the cost of moving pages if `swapped` pages are swapped out at the same time.
    pub(super) fn moves(&self, swapped: f64) -> Moves {
        let in_pool = self.pool.map(|pool| pool / (COMPRESSED * CONTENT));
        match (&self.disk, in_pool) {
            (None, _) => Moves::COMPRESSED,
            (Some(disk), None) => Moves::mixed(0.0, disk),
            (Some(disk), Some(pages)) => Moves::mixed((pages / swapped.max(1.0)).min(1.0), disk),
        }
    }

    /// Laps for the first touch of `pages` pages in order, with memory for `room` pages, followed by `faults`.
    pub(super) fn filled(&self, pages: f64, room: f64, faults: Faults) -> f64 {
        let fill = pages * FILL_LAPS;
        if pages <= room {
            return fill;
        }
        // Each page that is swapped in displaces another page. Some displaced pages were only read and still have their
        // copy on the disk.
        let again = if self.is_compressed || faults.is_writing {
            1.0
        } else {
            WRITTEN_AGAIN
        };
        let out = pages - room + again * faults.count;
        let moves = self.moves(pages - room);
        let back = if faults.in_order {
            moves.in_order
        } else {
            moves.alone
        };
        PRESSURE_LAPS + fill + out * moves.out + faults.count * back
    }
}

/// Returns the number of pages that the kernel keeps free on a machine on which `memory` pages are available to the
/// workload: the high watermark and the reserve of the lowest zone. Source: kernel `mm/page_alloc.c`,
/// `calculate_min_free_kbytes` and `__setup_per_zone_wmarks`; from 512 MiB on `mm/khugepaged.c`,
/// `set_recommended_min_free_kbytes`.
fn kept_free(memory: f64) -> f64 {
    const HUGE_PAGES_FROM: f64 = 512.0 * 256.0;
    /// Number of free pages that the kernel recommends for huge pages in two zones: 22 blocks of 512 pages.
    const FOR_HUGE_PAGES: f64 = 22.0 * 512.0;
    let machine = memory + MANAGED_PAGES;
    let min = if machine < HUGE_PAGES_FROM {
        // The square root of 16 times the size, both in KiB.
        (machine * 4.0 * 16.0).sqrt() / 4.0
    } else {
        FOR_HUGE_PAGES.min(machine / 20.0)
    };
    min + 2.0 * (min / 4.0).max(machine / 1000.0) + machine / 256.0
}

/// The references of a trial that fault: their number, and how they access pages.
#[derive(Clone, Copy)]
pub(super) struct Faults {
    pub(super) count: f64,
    /// True if pages are accessed sequentially.
    pub(super) in_order: bool,
    /// True if the references write their pages.
    pub(super) is_writing: bool,
}
