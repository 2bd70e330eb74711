//! Sets up swap on several devices: their disks, their settings and their priorities.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use pagetide_harness::MachineFate;
use pagetide_harness::swap::{Swap, fill, sysfs, zram_attributes, zswap, zswap_reclaims};
use pagetide_quantity::Bytes;
use pagetide_record::swap::tiers::DeviceKind;
use pagetide_record::{SwapDisk, SwapSpec, SwapTiers, Warning};
use pagetide_scenario::Group;

use crate::error::{GuestError, io};
use crate::size::Held;
use crate::{disk, filesystem, keeper, ssd};

/// The swap areas of a trial, and the simulated disks that they use.
#[derive(Default)]
pub struct SwapAreas {
    /// The swap areas, in the order in which they were enabled.
    pub areas: Vec<Swap>,
    /// Paths of the simulated disks: swap devices, backing devices, and the devices of file systems with swap files.
    pub disks: Vec<String>,
    /// True if a zram device has a backing device.
    pub has_backing: bool,
}

impl SwapAreas {
    /// Creates the description of swap on a single device.
    pub fn one(swap: Swap) -> Self {
        let disks = match swap.zram() {
            Some(_) => Vec::new(),
            None => vec![swap.device().to_owned()],
        };
        Self {
            areas: vec![swap],
            disks,
            has_backing: false,
        }
    }

    /// Returns the sysfs folder of the first zram device; `None` if there is none.
    pub fn zram(&self) -> Option<PathBuf> {
        let folder = self.areas.iter().find_map(Swap::zram)?;
        Some(folder.to_owned())
    }

    /// Returns the sysfs folders of the zram devices whose counters are recorded for each device separately. These are
    /// all zram devices if there are several, or if one has a backing device; otherwise none.
    pub fn devices(&self) -> Vec<PathBuf> {
        let zrams: Vec<&Path> = self.areas.iter().filter_map(Swap::zram).collect();
        let is_told = zrams.len() > 1 || self.has_backing;
        let zrams = zrams.into_iter().filter(|_| is_told);
        zrams.map(Path::to_owned).collect()
    }

    /// Returns the paths of the swap areas, separated by blanks.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.areas.iter().map(Swap::device).collect();
        names.join(" ")
    }
}

/// Name of the memory cgroup that the workload joins if zswap's shrinker is on.
const GROUP: &str = "workload";

/// If zswap's shrinker is on, moves the workload process to a memory cgroup of its own, without a limit. For the root
/// cgroup, the kernel does not count pages in zswap, so the shrinker would find nothing to write. Source: kernel
/// `mm/zswap.c`, `zswap_shrinker_count`.
pub fn group(swap: SwapSpec, workload: libc::pid_t) -> Result<(), GuestError> {
    let SwapSpec::Tiers(tiers) = swap else {
        return Ok(());
    };
    if !tiers.zswap.is_some_and(|front| front.shrinker) {
        return Ok(());
    }
    let attempt = || io("making the control group", GROUP);
    let group = Group::open(GROUP).map_err(attempt())?;
    fs::write(group.procs_file(), workload.to_string()).map_err(attempt())
}

/// Returns a warning if several swap devices have the same priority, so that the kernel takes slots from them in turn;
/// `None` otherwise.
pub fn warnings(swap: SwapSpec) -> Option<Warning> {
    let SwapSpec::Tiers(tiers) = swap else {
        return None;
    };
    let ranks = tiers.ranks();
    let striped = ranks.iter().find(|rank| rank.len() > 1)?;
    let names: Vec<String> = striped
        .iter()
        .map(|at| tiers.devices[*at].to_string())
        .collect();
    Some(Warning::Note {
        text: format!(
            "{} have one priority, so the kernel stripes them: neither is a tier above the other",
            names.join(" and ")
        ),
    })
}

/// Sets up the devices, which have `total` bytes together, and enables swap on each device in order. Adds the memory
/// that holds the content of simulated disks to `held`.
pub fn set_up(tiers: &SwapTiers, total: Bytes, held: &mut Held) -> Result<SwapAreas, GuestError> {
    let wrong = |why: String| GuestError::Spec { what: "boot", why };
    let sizes = tiers.sizes(total).map_err(|why| wrong(why.to_string()))?;
    // zswap is enabled before there is swap space, so that no page bypasses zswap.
    if let Some(front) = tiers.zswap {
        zswap(
            front.compressor.unwrap_or_default().name(),
            front.pool().name(),
        )?;
        zswap_reclaims(front.shrinker, front.writeback)?;
    }
    let mut disks = tiers.disks(total).into_iter().map(start_disk(held));
    let mut found = SwapAreas::default();
    let (mut zrams, mut files) = (0, 0);
    let fate = MachineFate::Ends;
    for (device, size) in tiers.devices.iter().zip(sizes) {
        let mut next = || {
            let disk = disks.next();
            disk.unwrap_or_else(|| Err(wrong("a swap device has no disk".to_owned())))
        };
        let area = match device.kind {
            DeviceKind::Disk(_) => {
                let path = next()?;
                found.disks.push(path.clone());
                Swap::on_disk_at(&path, size, device.priority, fate)?
            }
            DeviceKind::File(_) => {
                let path = next()?;
                found.disks.push(path.clone());
                let file = file_on(&path, files, size)?;
                files += 1;
                Swap::on_disk_at(&file, size, device.priority, fate)?
            }
            DeviceKind::Zram(zram) => {
                let backing = zram.writeback.map(|_| next()).transpose()?;
                let attributes = zram_attributes(&zram, backing.as_deref());
                let attributes: Vec<(&str, &str)> = attributes
                    .iter()
                    .map(|(name, value)| (*name, value.as_str()))
                    .collect();
                let path = format!("/dev/zram{zrams}");
                zrams += 1;
                let area = Swap::on_zram_with(&path, size, &attributes, device.priority, fate)?;
                keeper::start(&sysfs(&path), &zram)?;
                found.has_backing |= backing.is_some();
                found.disks.extend(backing);
                area
            }
        };
        found.areas.push(area);
    }
    Ok(found)
}

/// Returns a function that starts the next simulated disk, of a given kind and size, and returns the path of its
/// device. Adds the memory that holds the content of the disks to `held`.
fn start_disk(held: &mut Held) -> impl FnMut((SwapDisk, Bytes)) -> Result<String, GuestError> {
    let (mut ssds, mut turning) = (0, 0);
    move |(kind, size)| match kind {
        SwapDisk::Ssd(latency) => {
            let device = ssd::one(ssds, size, latency)?;
            ssds += 1;
            held.add(|| Ok(fill(&device, size)?))?;
            Ok(device)
        }
        SwapDisk::Disk(spec) => {
            turning += 1;
            held.add(|| disk::start(turning - 1, size, spec))
        }
    }
}

/// Mounts an ext4 file system on a disk, and creates a swap file of `size` bytes on it. Returns the path of the file.
fn file_on(device: &str, number: u32, size: Bytes) -> Result<String, GuestError> {
    let folder = format!("/swap-{number}");
    let holder = Bytes(u64::MAX);
    filesystem::prepare_at(device, holder, &pieces(number), &folder)?;
    let path = format!("{folder}/swap");
    File::create(&path).map_err(io("making the swap file", path.as_str()))?;
    // Swap needs a file without holes.
    fill(&path, size)?;
    Ok(path)
}

/// Returns the path, in the initial file system, of the pieces of the file system for swap file number `number`.
pub fn pieces(number: u32) -> String {
    format!("/swap-{number}.pieces")
}
