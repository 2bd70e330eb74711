//! Features that a kernel must have for a trial.

use std::collections::HashSet;

use pagetide_kernel::Need;
use pagetide_record::swap::tiers::DeviceKind;
use pagetide_record::{
    FileSystem, FilesOn, FilesSpec, Pass, Subject, SwapDisk, SwapSpec, SwapTiers,
};
use pagetide_scenario::Needs;

/// Returns all features that a kernel must have for a trial. They are checked together, so that all missing features
/// are reported at once.
pub(crate) fn wanted(subject: &Subject, needs: &Needs) -> Vec<Need> {
    let mut wanted = vec![
        Need::Initramfs,
        Need::PortAccess,
        Need::Devtmpfs,
        Need::Devmem,
        Need::Proc,
        Need::VmEvents,
        Need::EarlyPrintk,
    ];
    match subject.swap {
        SwapSpec::None | SwapSpec::Ssd(_) | SwapSpec::Disk(_) => {}
        SwapSpec::Zram(None) => wanted.extend([Need::Swap, Need::Zram, Need::ZramLz4]),
        SwapSpec::Zram(Some(_)) => wanted.extend([Need::Swap, Need::Zram]),
        SwapSpec::Zswap(_) => wanted.push(Need::Zswap),
        SwapSpec::Tiers(tiers) => {
            let zrams = || tiers.zrams();
            let front = tiers.zswap;
            let all = [
                (Need::Zram, zrams().next().is_some()),
                (
                    Need::ZramWriteback,
                    zrams().any(|zram| zram.writeback.is_some()),
                ),
                (
                    Need::ZramRecompression,
                    zrams().any(|zram| zram.recompress.is_some()),
                ),
                (Need::Zswap, front.is_some()),
                (
                    Need::ZswapShrinker,
                    front.is_some_and(|front| front.shrinker),
                ),
                (Need::Memcg, front.is_some_and(|front| front.shrinker)),
                (
                    Need::ZswapNoWriteback,
                    front.is_some_and(|front| !front.writeback),
                ),
                (Need::Ext4, has_file(tiers)),
            ];
            wanted.push(Need::Swap);
            wanted.extend(
                all.into_iter()
                    .filter(|(_, is_needed)| *is_needed)
                    .map(|(need, _)| need),
            );
        }
    }
    for (disk, _) in subject.swap.disks(subject.swap_size) {
        wanted.extend(match disk {
            SwapDisk::Ssd(_) => [Need::Swap, Need::NullBlk],
            SwapDisk::Disk(_) => [Need::Swap, Need::Nbd],
        });
    }
    if needs.filesystem.is_some() {
        let FilesSpec { system, on } = subject.files_on;
        if system != FileSystem::Tmpfs {
            wanted.push(match on {
                FilesOn::Ssd | FilesOn::Null => Need::NullBlk,
                FilesOn::Disk(_) => Need::Nbd,
            });
        }
        wanted.push(need_of(system));
    }
    let of_scenario = [
        (Need::Thp, needs.thp),
        (Need::Memcg, needs.groups || subject.limit.is_some()),
        (Need::ReclaimRequests, needs.reclaim_requests),
        (Need::ZswapMax, needs.zswap_max),
    ];
    let of_scenario = of_scenario.into_iter().filter(|(_, is_needed)| *is_needed);
    wanted.extend(of_scenario.map(|(need, _)| need));
    if subject.pass == Pass::Observed {
        wanted.push(Need::Tracing);
    }
    if subject.cpus.are_several() {
        wanted.push(Need::Smp);
    }
    if !subject.nodes.is_default() {
        wanted.extend([Need::Numa, Need::AcpiNuma]);
    }
    if subject.nodes.has_slow() {
        wanted.push(Need::Hmat);
    }
    let of_settings: [(&str, Need); 5] = [
        ("lru_gen/", Need::LruGen),
        ("zswap/", Need::Zswap),
        ("thp/", Need::Thp),
        ("numa/", Need::Numa),
        ("kernel.numa_balancing", Need::NumaBalancing),
    ];
    for (prefix, need) in of_settings {
        let mut names = subject.variant.settings.keys();
        if names.any(|name| name.starts_with(prefix)) {
            wanted.push(need);
        }
    }
    let mut seen = HashSet::new();
    wanted.retain(|need| seen.insert(*need));
    wanted
}

/// Returns true if one of the swap devices is a file.
pub(crate) fn has_file(tiers: &SwapTiers) -> bool {
    let mut kinds = tiers.devices.iter().map(|device| device.kind);
    kinds.any(|kind| matches!(kind, DeviceKind::File(_)))
}

/// Returns the feature that a kernel needs for a file system.
pub(crate) fn need_of(system: FileSystem) -> Need {
    match system {
        FileSystem::Ext4 => Need::Ext4,
        FileSystem::Xfs => Need::Xfs,
        FileSystem::Btrfs => Need::Btrfs,
        FileSystem::Tmpfs => Need::Tmpfs,
    }
}
