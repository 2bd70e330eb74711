//! Ways in which a user-space program can request contiguous memory from the kernel, one block at a time.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use pagetide_quantity::{Bytes, Nanos, Pages};

use crate::clock::Clock;
use crate::error::Stop;
use crate::fill::Filler;
use crate::mapping::Mapping;
use crate::number;
use crate::page::PAGE;
use crate::pagemap::PageMap;
use crate::params::choice;

choice! {
    /// The way in which a block is requested.
    pub(crate) enum Way {
        /// A transparent huge page: the first touch of an aligned block with MADV_HUGEPAGE. Blocks below 2 MiB need
        /// multi-size huge pages.
        Thp = "thp",
        /// A huge page: 512 filled base pages, collapsed by MADV_COLLAPSE.
        Collapse = "collapse",
        /// One more page in the hugetlb pool, requested by enlarging the pool.
        Hugetlb = "hugetlb",
        /// One block of a packet socket's ring.
        Packet = "packet",
    }
}

/// `MADV_COLLAPSE` of Linux 6.1 (include/uapi/asm-generic/mman-common.h).
const MADV_COLLAPSE: libc::c_int = 25;
/// File that sets the number of 2 MiB pages in the hugetlb pool.
const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
/// Folder of the settings of transparent huge pages in sysfs.
const THP: &str = "/sys/kernel/mm/transparent_hugepage";
/// `PACKET_RX_RING` of Linux (include/uapi/linux/if_packet.h).
const PACKET_RX_RING: libc::c_int = 5;

/// A block that stays allocated until this value is dropped.
pub(crate) enum BlockHold {
    /// Locked memory, unmapped on drop.
    Memory(Mapping),
    /// A packet socket with its ring.
    Socket(#[expect(dead_code, reason = "held, not looked at")] OwnedFd),
    /// A page of the hugetlb pool, returned on drop.
    PoolPage,
}

impl BlockHold {
    /// Locks a mapping and keeps it. Without the lock, reclaim could take memory from earlier attempts and give it to
    /// later ones.
    fn locked(mapping: Mapping) -> Result<Self, Stop> {
        mapping.lock()?;
        Ok(Self::Memory(mapping))
    }
}

impl Drop for BlockHold {
    fn drop(&mut self) {
        if let Self::PoolPage = self
            && let Some(pages) = pool()
        {
            let _ = fs::write(POOL, pages.saturating_sub(1).to_string());
        }
    }
}

/// Result of one attempt to allocate a block.
pub(crate) struct Attempt {
    /// Time at which the attempt began.
    pub begin: Nanos,
    /// Duration of the attempt.
    pub latency: Nanos,
    /// The allocated block; `None` if the attempt failed.
    pub held: Option<BlockHold>,
}

/// Requests blocks of one size in one way, and measures the latency of each attempt.
pub(crate) struct Asker<'a> {
    pub way: Way,
    pub block: Bytes,
    pub clock: Clock,
    pub filler: &'a Filler,
    pub page_map: PageMap,
}

/// Returns the settings that allow transparent huge pages of this size in memory with MADV_HUGEPAGE.
///
/// Without them the defaults may forbid such pages. Linux `hugepage_init`: with less than 512 MiB of memory, all
/// defaults are never, including compaction at a fault, regardless of the kernel configuration.
/// Documentation/admin-guide/mm/transhuge.rst: sizes below the largest are off by default.
pub(crate) fn thp_settings(block: Bytes) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> = ["thp/enabled", "thp/defrag"]
        .map(|name| (name.to_owned(), "madvise".to_owned()))
        .into();
    if block != Bytes::from_mib(2) {
        let name = format!("thp/hugepages-{}kB/enabled", block.0 >> 10);
        settings.insert(name, "madvise".to_owned());
    }
    settings
}

/// Returns the kernel feature or setting that is missing for requesting blocks in this way; `None` if nothing is
/// missing.
pub(crate) fn missing(way: Way, block: Bytes) -> Option<String> {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    match way {
        Way::Thp | Way::Collapse => {
            let all = read(format!("{THP}/enabled"));
            if all.is_empty() {
                return Some("transparent huge pages".to_owned());
            }
            let size = read(format!("{THP}/hugepages-{}kB/enabled", block.0 >> 10));
            let small = block.0 != 2 << 20;
            if small && size.is_empty() {
                return Some(format!("transparent huge pages of {block}"));
            }
            let on = |text: &str| !text.contains("[never]");
            let enabled = match size.as_str() {
                "" => on(&all),
                size if size.contains("[inherit]") => on(&all),
                size => on(size),
            };
            (way == Way::Thp && !enabled)
                .then(|| format!("a transparent huge page setting for {block} other than never"))
        }
        Way::Hugetlb => fs::metadata(POOL)
            .is_err()
            .then(|| "a hugetlb pool of 2 MiB pages".to_owned()),
        Way::Packet => socket()
            .is_none()
            .then(|| "packet sockets (or the right to open one)".to_owned()),
    }
}

impl Asker<'_> {
    /// Requests one block and measures how long this takes.
    pub(crate) fn ask(&mut self) -> Result<Attempt, Stop> {
        match self.way {
            Way::Thp => self.touch(),
            Way::Collapse => self.collapse(),
            Way::Hugetlb => Ok(self.grow_pool()),
            Way::Packet => self.ring(),
        }
    }

    /// Runs `work` and returns the time at which it began, and its duration.
    fn timed(&self, work: impl FnOnce()) -> (Nanos, Nanos) {
        let start = self.clock.now();
        work();
        (start, self.clock.now().since(start))
    }

    /// Requests a block by touching one byte. The attempt succeeded if all pages of the block are then present.
    fn touch(&mut self) -> Result<Attempt, Stop> {
        let mapping = Mapping::aligned(self.block.pages(), self.block.0)?;
        mapping.advise(libc::MADV_HUGEPAGE);
        let (begin, latency) = self.timed(|| {
            // SAFETY: a mapping has at least a page, so its first byte lies within it, and no reference to it exists.
            unsafe { mapping.start().write_volatile(1) };
        });
        let got = self.is_present(&mapping)?;
        Ok(Attempt {
            begin,
            latency,
            held: got.then(|| BlockHold::locked(mapping)).transpose()?,
        })
    }

    fn is_present(&mut self, mapping: &Mapping) -> Result<bool, Stop> {
        let mut present = 0;
        self.page_map
            .each(mapping, |_, entry| present += u64::from(entry.present()))?;
        Ok(present == mapping.pages())
    }

    /// Returns true if all pages of an allocated block are still in memory. Compaction may have moved the block, small
    /// blocks even in pieces, because a lock only protects memory from reclaim.
    pub(crate) fn is_held(&mut self, block: &BlockHold) -> Result<bool, Stop> {
        match block {
            BlockHold::Memory(mapping) => self.is_present(mapping),
            // The kernel neither moves nor reclaims these blocks.
            BlockHold::Socket(_) | BlockHold::PoolPage => Ok(true),
        }
    }

    fn collapse(&mut self) -> Result<Attempt, Stop> {
        let mapping = Mapping::aligned(self.block.pages(), self.block.0)?;
        mapping.advise(libc::MADV_NOHUGEPAGE);
        mapping.fill(self.filler, 0, mapping.pages());
        let mut got = false;
        // Undo MADV_NOHUGEPAGE first, otherwise the call fails.
        mapping.advise(libc::MADV_HUGEPAGE);
        let (begin, latency) = self.timed(|| got = mapping.advise(MADV_COLLAPSE));
        let error = std::io::Error::last_os_error();
        if !got && error.raw_os_error() == Some(libc::EINVAL) {
            return Err(Stop::System {
                attempt: "cannot collapse pages by MADV_COLLAPSE, which Linux has since 6.1"
                    .to_owned(),
                source: error,
            });
        }
        Ok(Attempt {
            begin,
            latency,
            held: got.then(|| BlockHold::locked(mapping)).transpose()?,
        })
    }

    fn grow_pool(&self) -> Attempt {
        let before = pool().unwrap_or(0);
        let (begin, latency) = self.timed(|| {
            let _ = fs::write(POOL, (before + 1).to_string());
        });
        Attempt {
            begin,
            latency,
            held: (pool().unwrap_or(0) > before).then_some(BlockHold::PoolPage),
        }
    }

    /// Requests a ring of one block. The kernel silently falls back to memory that is not contiguous, so the page
    /// frames of the ring are checked.
    fn ring(&mut self) -> Result<Attempt, Stop> {
        let Some(socket) = socket() else {
            return Ok(Attempt {
                begin: self.clock.now(),
                latency: Nanos(0),
                held: None,
            });
        };
        let block = number::narrow(self.block.0);
        // struct tpacket_req: block size, number of blocks, frame size, number of frames.
        let frame = number::narrow(PAGE as u64);
        let request = [block, 1, frame, block / frame];
        let mut refused = 0;
        let (begin, latency) = self.timed(|| {
            // SAFETY: the request has the layout and size of the option.
            refused = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_PACKET,
                    PACKET_RX_RING,
                    request.as_ptr().cast(),
                    number::narrow(size_of_val(&request) as u64),
                )
            };
        });
        let contiguous = refused == 0 && self.is_contiguous(&socket)?;
        Ok(Attempt {
            begin,
            latency,
            held: contiguous.then_some(BlockHold::Socket(socket)),
        })
    }

    /// Returns true if the pages of a ring have consecutive page frames.
    fn is_contiguous(&mut self, ring: &OwnedFd) -> Result<bool, Stop> {
        let mapping = Mapping::file(ring, self.block.pages())?;
        let (mut first, mut in_a_row) = (None, 0);
        self.page_map.each(&mapping, |page, entry| {
            let frame = entry.frame();
            if page == 0 {
                first = frame;
            }
            let wanted = first.map(|first| first + page);
            in_a_row += u64::from(frame.is_some() && frame == wanted);
        })?;
        Ok(in_a_row == mapping.pages())
    }
}

/// Returns the number of pages in the hugetlb pool; `None` if there is no pool.
fn pool() -> Option<u64> {
    fs::read_to_string(POOL).ok()?.trim().parse().ok()
}

fn socket() -> Option<OwnedFd> {
    // SAFETY: plain numbers; protocol 0 receives nothing.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: the descriptor was just made and belongs to nobody else.
    (socket >= 0).then(|| unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Checks a block size for this way. The error names the sizes that are possible.
pub(crate) fn fits(way: Way, block: Bytes) -> Result<(), &'static str> {
    let power = block.0.is_power_of_two() && block.0 >= 2 * PAGE as u64;
    match way {
        Way::Thp if power && block.0 <= 2 << 20 => Ok(()),
        Way::Thp => Err("a power of two from 8K to 2M"),
        Way::Collapse | Way::Hugetlb if block.0 == 2 << 20 => Ok(()),
        Way::Collapse | Way::Hugetlb => Err("2M"),
        Way::Packet if power && block.0 <= 4 << 20 => Ok(()),
        Way::Packet => Err("a power of two from 8K to 4M"),
    }
}

/// Returns the order of a block: the base-2 logarithm of its number of pages.
pub(crate) fn order(block: Bytes) -> usize {
    let Pages(pages) = block.pages();
    pages.max(1).ilog2() as usize
}
