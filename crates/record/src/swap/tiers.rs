//! Swap on several devices, or on one device that has a size, a priority or other settings.
//!
//! Grammar. The canonical text has the options of a device in this order:
//!
//! ```text
//! SWAP     = [ZSWAP+]DEVICE[,DEVICE…]
//! DEVICE   = KIND[:OPTION…][@PRIORITY]
//! KIND     = zram | ssd | disk | file
//! zram     : COMPRESSOR, SIZE, limit=SIZE, recompress=COMPRESSOR, writeback=DISK (the last)
//! ssd      : LATENCY, SIZE
//! disk     : SEEK,RATE and SIZE
//! file     : SIZE, then +DISK for the disk that the file is on; without, ssd
//! DISK     = ssd[:LATENCY][:SIZE] | disk[:SEEK,RATE][:SIZE]
//! ZSWAP    = zswap[:COMPRESSOR[:POOL]][:shrinker][:no-writeback]
//! ```
//!
//! Examples: `zram:8M@100,ssd@10`, `zram:zstd:16M:limit=4M:writeback=ssd`, `zswap:shrinker+ssd`, `file:64M+disk`. A
//! device with a higher priority is used first. Devices with the same priority are striped: the kernel takes slots from
//! them in turn. Devices without a priority come after all others, in their order. Devices without a size share the
//! rest of the swap size equally.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use pagetide_quantity::{Bytes, PAGE_SIZE};

use super::parts::{Compressor, Pool, SSD_LATENCY, SwapDisk, SwapError};
use crate::disk::DiskSpec;
use crate::text::exact_size;

/// Minimum size of a swap device.
const MIN: Bytes = Bytes::from_mib(1);
/// Maximum number of swap devices.
const MAX_DEVICES: usize = 8;
/// Maximum priority that the kernel accepts. Source: kernel `include/linux/swap.h`, `SWAP_FLAG_PRIO_MASK`.
const MAX_PRIORITY: u16 = 32_767;

/// zswap in front of the swap devices, with all its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ZswapFront {
    /// The compressor of zswap; `None` for the default.
    pub compressor: Option<Compressor>,
    /// The allocator of zswap; `None` for the default.
    pub pool: Option<Pool>,
    /// True if the shrinker is on (`zswap/shrinker_enabled`): reclaim writes cold compressed pages to the disk before
    /// the pool is full.
    pub shrinker: bool,
    /// False if nothing may be written from zswap to a disk (`memory.zswap.writeback` is 0).
    pub writeback: bool,
}

impl ZswapFront {
    /// Returns the allocator of this zswap; the default if none is specified.
    pub fn pool(self) -> Pool {
        self.pool.unwrap_or_default()
    }
}

impl fmt::Display for ZswapFront {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = "zswap".to_owned();
        // The pool can only be written after a compressor.
        if self.compressor.is_some() || self.pool.is_some() {
            text.push(':');
            text.push_str(self.compressor.unwrap_or_default().name());
        }
        if let Some(pool) = self.pool {
            text.push(':');
            text.push_str(pool.name());
        }
        if self.shrinker {
            text.push_str(":shrinker");
        }
        if !self.writeback {
            text.push_str(":no-writeback");
        }
        f.pad(&text)
    }
}

/// A zram device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ZramDevice {
    /// The compressor of the device; `None` for the default.
    pub compressor: Option<Compressor>,
    /// Maximum memory that the compressed pages may take (`mem_limit`); `None` for no limit.
    pub limit: Option<Bytes>,
    /// The compressor with which idle pages are compressed again; `None` for no recompression.
    pub recompress: Option<Compressor>,
    /// The backing device to which idle and incompressible pages are written; `None` for no writeback.
    pub writeback: Option<Backing>,
}

/// The backing device of zram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backing {
    /// The simulated disk that is the backing device.
    pub disk: SwapDisk,
    /// Size of the disk; `None` for the size of the zram device.
    pub size: Option<Bytes>,
}

/// Storage of a swap area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A zram device.
    Zram(ZramDevice),
    /// A simulated disk.
    Disk(SwapDisk),
    /// A file on an ext4 file system, which is alone on this simulated disk.
    File(SwapDisk),
}

/// One of the swap devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SwapDevice {
    /// Storage of the swap area.
    pub kind: DeviceKind,
    /// Size of the swap area; `None` for an equal share of the swap size that devices with a size leave.
    pub size: Option<Bytes>,
    /// Priority of the swap area; `None` to let the kernel choose one below all others.
    pub priority: Option<u16>,
}

/// Swap on several devices, or on one device with its own settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SwapTiers {
    /// zswap in front of all devices; `None` for no zswap.
    pub zswap: Option<ZswapFront>,
    /// The devices, in the order in which swap is enabled on them. There is at least one.
    pub devices: Vec<SwapDevice>,
}

/// A tier of swap: a place of swapped-out pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Text of the tier for users, such as `zswap`, `zram:8M` or `ssd:80us`; striped devices are joined by ` and `.
    pub name: String,
    /// Where the tier's pages are.
    pub place: TierPlace,
}

/// Where the pages of a tier are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierPlace {
    /// In zswap's pool.
    Zswap,
    /// On the swap devices with these indices, which have one priority.
    Devices(Vec<usize>),
    /// On the backing device of the zram device with this index.
    Backing(usize),
}

impl SwapTiers {
    /// Returns a reference to an equal value that lives until the program ends, so that [`SwapSpec`](super::SwapSpec)
    /// can be `Copy`. Equal values share memory that is never freed: a program uses few kinds of swap.
    pub(super) fn interned(self) -> &'static Self {
        static ALL: Mutex<Vec<&'static SwapTiers>> = Mutex::new(Vec::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| ***known == self) {
            return known;
        }
        let new: &'static Self = Box::leak(Box::new(self));
        all.push(new);
        new
    }

    /// Returns the sizes of the devices, in their order, if all swap together has `total` bytes. Fails if the given
    /// sizes leave less than 1 MiB for each of the others, or if all are given and their sum differs from `total`.
    pub fn sizes(&self, total: Bytes) -> Result<Vec<Bytes>, SwapError> {
        let given: u64 = self
            .devices
            .iter()
            .filter_map(|one| one.size)
            .map(|size| size.0)
            .sum();
        let open = self.devices.iter().filter(|one| one.size.is_none()).count() as u64;
        let wrong = || SwapError::Sizes {
            given: exact_size(Bytes(given)),
            total: exact_size(total),
            open,
        };
        let rest = total.0.checked_sub(given).ok_or_else(wrong)?;
        let share = rest.checked_div(open).unwrap_or_default() / PAGE_SIZE * PAGE_SIZE;
        if (open == 0 && rest != 0) || (open > 0 && share < MIN.0) {
            return Err(wrong());
        }
        Ok(self
            .devices
            .iter()
            .map(|one| one.size.unwrap_or(Bytes(share)))
            .collect())
    }

    /// Returns the sum of the sizes of all devices; `None` if a device has no size of its own.
    pub(super) fn sum(&self) -> Option<Bytes> {
        self.devices
            .iter()
            .map(|one| one.size.map(|size| size.0))
            .sum::<Option<u64>>()
            .map(Bytes)
    }

    /// Groups of devices that the kernel fills one after the other, as indices of devices. More than one index in a
    /// group means that the kernel stripes these devices.
    pub fn ranks(&self) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.devices.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.devices[*at].priority.map_or(-1, i32::from)));
        let mut ranks: Vec<Vec<usize>> = Vec::new();
        for at in order {
            let priority = self.devices[at].priority;
            match ranks.last_mut() {
                Some(rank) if priority.is_some() && self.devices[rank[0]].priority == priority => {
                    rank.push(at);
                }
                _ => ranks.push(vec![at]),
            }
        }
        ranks
    }

    /// Returns the zram devices, in their order.
    pub fn zrams(&self) -> impl Iterator<Item = &ZramDevice> {
        self.devices.iter().filter_map(|one| match &one.kind {
            DeviceKind::Zram(zram) => Some(zram),
            _ => None,
        })
    }

    /// Returns true if all devices are zram without a backing device.
    pub(super) fn only_zram(&self) -> bool {
        let writes = |zram: &ZramDevice| zram.writeback.is_some();
        self.zrams().count() == self.devices.len() && !self.zrams().any(writes)
    }

    /// Returns the number of rotating disks that the devices use, including backing devices of zram.
    pub(super) fn rotating_disks(&self) -> usize {
        let disks = self.devices.iter().filter_map(|device| match device.kind {
            DeviceKind::Disk(disk) | DeviceKind::File(disk) => Some(disk),
            DeviceKind::Zram(zram) => zram.writeback.map(|backing| backing.disk),
        });
        disks
            .filter(|disk| matches!(disk, SwapDisk::Disk(_)))
            .count()
    }

    /// Returns all simulated disks of the devices, with their sizes, if all swap together has `total` bytes: the disk
    /// of each device in order, including the backing device of a zram device. Empty if the sizes contradict `total`.
    pub fn disks(&self, total: Bytes) -> Vec<(SwapDisk, Bytes)> {
        let sizes = self.sizes(total).unwrap_or_default();
        self.devices
            .iter()
            .zip(sizes)
            .filter_map(|(device, size)| match device.kind {
                DeviceKind::Disk(disk) => Some((disk, size)),
                DeviceKind::File(disk) => Some((disk, holder(size))),
                DeviceKind::Zram(zram) => {
                    let backing = zram.writeback?;
                    Some((backing.disk, backing.size.unwrap_or(size)))
                }
            })
            .collect()
    }

    /// Returns the tiers, from the highest to the lowest.
    pub(super) fn tiers(&self) -> Vec<Tier> {
        let mut tiers: Vec<Tier> = self
            .zswap
            .map(|_| Tier {
                name: "zswap".to_owned(),
                place: TierPlace::Zswap,
            })
            .into_iter()
            .collect();
        tiers.extend(self.ranks().into_iter().map(|rank| {
            let names: Vec<String> = rank
                .iter()
                .map(|at| self.devices[*at].to_string())
                .collect();
            Tier {
                name: names.join(" and "),
                place: TierPlace::Devices(rank),
            }
        }));
        for (at, device) in self.devices.iter().enumerate() {
            if let DeviceKind::Zram(ZramDevice {
                writeback: Some(backing),
                ..
            }) = device.kind
            {
                tiers.push(Tier {
                    name: format!("writeback to {}", backing.disk),
                    place: TierPlace::Backing(at),
                });
            }
        }
        tiers
    }

    /// Parses swap on several devices, in the grammar of this module.
    pub(super) fn parse(text: &str) -> Result<Self, SwapError> {
        let (zswap, devices) = if text.starts_with("zswap") {
            let (head, devices) = text.split_once('+').unwrap_or((text, "ssd"));
            (Some(ZswapFront::parse(head)?), devices)
        } else {
            (None, text)
        };
        let devices: Vec<SwapDevice> = split(devices)
            .into_iter()
            .map(SwapDevice::parse)
            .collect::<Result<_, _>>()?;
        if devices.len() > MAX_DEVICES {
            return Err(SwapError::ManyDevices(devices.len()));
        }
        let tiers = Self { zswap, devices };
        if zswap.is_some() && tiers.zrams().next().is_some() {
            return Err(SwapError::ZswapOnZram);
        }
        Ok(tiers)
    }
}

/// Returns the size of the disk that holds a file system with a swap file of this size.
fn holder(size: Bytes) -> Bytes {
    Bytes((size.0 + size.0 / 16).next_multiple_of(1 << 20) + (4 << 20))
}

/// Returns true if a text can only mean swap in the grammar of this module: it has a priority, an option with a value,
/// a size, a file, a setting of zswap, or several devices.
pub(super) fn is_meant(text: &str) -> bool {
    let words = text.split([':', '+', ',', '@']);
    let is_size = |word: &str| {
        word.ends_with(['K', 'M', 'G']) && word.starts_with(|c: char| c.is_ascii_digit())
    };
    text.contains(['@', '='])
        || split(text).len() > 1
        || words.into_iter().any(|word| {
            is_size(word)
                || [
                    "file",
                    "shrinker",
                    "no-writeback",
                    "writeback",
                    "recompress",
                    "limit",
                ]
                .contains(&word)
        })
}

/// Splits devices at commas. A comma before a digit belongs to a disk's rate.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(',') {
        if !text[at + 1..].starts_with(|c: char| c.is_ascii_digit()) {
            parts.push(&text[from..at]);
            from = at + 1;
        }
    }
    parts.push(&text[from..]);
    parts
}

/// Parses the size of a device and rounds it down to whole pages. Fails if it is smaller than 1 MiB.
fn size(text: &str) -> Result<Bytes, SwapError> {
    let size: Bytes = text.parse()?;
    if size < MIN {
        return Err(SwapError::Small(text.to_owned()));
    }
    Ok(Bytes(size.0 / PAGE_SIZE * PAGE_SIZE))
}

/// Sets the option called `part` of the device `text`. Fails if it already has a value.
fn once<T>(
    option: &mut Option<T>,
    value: T,
    text: &str,
    part: &'static str,
) -> Result<(), SwapError> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(SwapError::Twice {
            device: text.to_owned(),
            part,
        }),
    }
}

/// Parses a simulated disk and its size; `text` begins with `ssd` or `disk`.
fn disk(text: &str) -> Result<(SwapDisk, Option<Bytes>), SwapError> {
    let (word, options) = text
        .split_once(':')
        .map_or((text, None), |(word, rest)| (word, Some(rest)));
    let (mut of, mut its_size) = (None, None);
    for option in options.into_iter().flat_map(|options| options.split(':')) {
        let disk = match word {
            "ssd" => option.parse().map(SwapDisk::Ssd).map_err(SwapError::from),
            _ => format!("disk:{option}")
                .parse()
                .map(SwapDisk::Disk)
                .map_err(SwapError::from),
        };
        match (disk, option.ends_with(['K', 'M', 'G'])) {
            (_, true) => once(&mut its_size, size(option)?, text, "size")?,
            (disk, _) => once(&mut of, disk?, text, "latency")?,
        }
    }
    let of = of.unwrap_or(match word {
        "ssd" => SwapDisk::Ssd(SSD_LATENCY),
        "disk" => SwapDisk::Disk(DiskSpec::default()),
        _ => return Err(SwapError::Unknown(text.to_owned())),
    });
    Ok((of, its_size))
}

impl ZswapFront {
    fn parse(text: &str) -> Result<Self, SwapError> {
        let mut front = Self {
            compressor: None,
            pool: None,
            shrinker: false,
            writeback: true,
        };
        let rest = text.strip_prefix("zswap").unwrap_or(text);
        if rest.is_empty() {
            return Ok(front);
        }
        let options = rest
            .strip_prefix(':')
            .ok_or_else(|| SwapError::Unknown(text.to_owned()))?;
        for option in options.split(':') {
            match option {
                "shrinker" => front.shrinker = true,
                "no-writeback" => front.writeback = false,
                name if front.compressor.is_none() => {
                    front.compressor = Some(Compressor::named(name)?);
                }
                name => once(&mut front.pool, Pool::named(name)?, text, "pool")?,
            }
        }
        Ok(front)
    }
}

impl SwapDevice {
    fn parse(text: &str) -> Result<Self, SwapError> {
        let mut parts = text.split('@');
        let what = parts.next().unwrap_or_default();
        let mut priority = None;
        for part in parts {
            let number = part.parse().ok().filter(|number| *number <= MAX_PRIORITY);
            let number = number.ok_or_else(|| SwapError::Priority(part.to_owned()))?;
            once(&mut priority, number, text, "priority")?;
        }
        let word = what.split([':', '+']).next().unwrap_or_default();
        let (kind, size) = match word {
            "zram" => ZramDevice::parse(what)?,
            "file" => {
                let (file, on) = what.split_once('+').unwrap_or((what, "ssd"));
                let its_size = file.strip_prefix("file:").map(size).transpose()?;
                match (disk(on)?, its_size) {
                    ((disk, None), _) => (DeviceKind::File(disk), its_size),
                    ((_, Some(of_disk)), Some(file)) if file >= of_disk => {
                        return Err(SwapError::LargerThanDisk {
                            file: exact_size(file),
                            disk: exact_size(of_disk),
                        });
                    }
                    _ => return Err(SwapError::FileDisk(text.to_owned())),
                }
            }
            "ssd" | "disk" => {
                let (disk, size) = disk(what)?;
                (DeviceKind::Disk(disk), size)
            }
            _ => return Err(SwapError::Unknown(text.to_owned())),
        };
        Ok(Self {
            kind,
            size,
            priority,
        })
    }
}

impl ZramDevice {
    fn parse(text: &str) -> Result<(DeviceKind, Option<Bytes>), SwapError> {
        let mut zram = Self::default();
        let mut its_size = None;
        let mut rest = text.strip_prefix("zram").unwrap_or(text);
        while let Some(options) = rest.strip_prefix(':') {
            // The text of a backing disk may contain colons, so it comes last.
            if let Some(backing) = options.strip_prefix("writeback=") {
                let (disk, size) =
                    disk(backing).map_err(|_| SwapError::Backing(text.to_owned()))?;
                zram.writeback = Some(Backing { disk, size });
                return Ok((DeviceKind::Zram(zram), its_size));
            }
            let end = options.find(':').unwrap_or(options.len());
            let option = &options[..end];
            rest = &options[end..];
            match option.split_once('=') {
                Some(("limit", value)) => once(&mut zram.limit, size(value)?, text, "limit")?,
                Some(("recompress", name)) => {
                    once(
                        &mut zram.recompress,
                        Compressor::named(name)?,
                        text,
                        "recompress",
                    )?;
                }
                None if option == "writeback" => return Err(SwapError::Backing(text.to_owned())),
                None if option.ends_with(['K', 'M', 'G']) => {
                    once(&mut its_size, size(option)?, text, "size")?;
                }
                _ => once(
                    &mut zram.compressor,
                    Compressor::named(option)?,
                    text,
                    "compressor",
                )?,
            }
        }
        if rest.is_empty() {
            Ok((DeviceKind::Zram(zram), its_size))
        } else {
            Err(SwapError::Unknown(text.to_owned()))
        }
    }
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.disk)?;
        self.size
            .map_or(Ok(()), |size| write!(f, ":{}", exact_size(size)))
    }
}

impl fmt::Display for SwapDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self
            .size
            .map_or(String::new(), |size| format!(":{}", exact_size(size)));
        match self.kind {
            DeviceKind::Disk(disk) => write!(f, "{disk}{size}")?,
            DeviceKind::File(disk) => write!(f, "file{size}+{disk}")?,
            DeviceKind::Zram(zram) => {
                f.write_str("zram")?;
                if let Some(compressor) = zram.compressor {
                    write!(f, ":{}", compressor.name())?;
                }
                f.write_str(&size)?;
                if let Some(limit) = zram.limit {
                    write!(f, ":limit={}", exact_size(limit))?;
                }
                if let Some(compressor) = zram.recompress {
                    write!(f, ":recompress={}", compressor.name())?;
                }
                if let Some(backing) = zram.writeback {
                    write!(f, ":writeback={backing}")?;
                }
            }
        }
        self.priority
            .map_or(Ok(()), |priority| write!(f, "@{priority}"))
    }
}

impl fmt::Display for SwapTiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        if let Some(zswap) = self.zswap {
            text.push_str(&zswap.to_string());
            text.push('+');
        }
        for (at, device) in self.devices.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&device.to_string());
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests;
