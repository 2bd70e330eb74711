//! The simulated disks of a trial, on which it has its swap and its files.

use pagetide_guest::spec::SsdSpec;
use pagetide_quantity::Nanos;
use pagetide_record::swap::SSD_LATENCY;
use pagetide_record::{FileSystem, FilesOn, Subject, SwapDisk, SwapSpec};
use pagetide_scenario::Needs;

/// Returns the simulated solid-state disks of a trial; `None` if there are none.
pub(crate) fn ssds(subject: &Subject, needs: &Needs) -> Option<SsdSpec> {
    let is_simulated =
        subject.files_on.system != FileSystem::Tmpfs && subject.files_on.disk().is_none();
    let filesystem = needs.filesystem.filter(|_| is_simulated);
    let files = filesystem.unwrap_or_default();
    let is_null = subject.files_on.on == FilesOn::Null;
    let of = |devices, latency, size, other| {
        Some(SsdSpec {
            devices,
            size,
            latency,
            other,
        })
    };
    match (subject.swap.on_disk(), filesystem) {
        (Some(SwapDisk::Ssd(latency)), filesystem) => {
            let size = subject.swap_size.max(files);
            match filesystem {
                Some(_) if is_null => of(1, latency, size, Some(Nanos(0))),
                Some(_) => of(2, latency, size, None),
                None => of(1, latency, size, None),
            }
        }
        (_, Some(size)) if is_null => of(1, Nanos(0), size, None),
        (_, Some(size)) => of(1, SSD_LATENCY, size, None),
        (_, None) => None,
    }
}

/// Returns true if one of several swap devices is a simulated solid-state disk.
pub(crate) fn has_ssd(subject: &Subject) -> bool {
    let disks = subject.swap.disks(subject.swap_size);
    matches!(subject.swap, SwapSpec::Tiers(_))
        && disks
            .iter()
            .any(|(disk, _)| matches!(disk, SwapDisk::Ssd(_)))
}

/// Returns the number of rotating disks that a trial uses.
pub(crate) fn turning_disks(subject: &Subject) -> usize {
    subject.swap.rotating_disks() + usize::from(subject.files_on.disk().is_some())
}

/// Returns the module parameters of null_blk, the simulated disk: content in memory, completion by timer after the
/// latency, one queue. Source: kernel `Documentation/block/null_blk.rst`.
pub(crate) fn ssd_params(disk: &SsdSpec) -> String {
    let gb = disk.size.0.div_ceil(1 << 30).max(1);
    format!(
        "memory_backed=1 gb={gb} irqmode=2 completion_nsec={} nr_devices={} queue_mode=2 submit_queues=1 hw_queue_depth=64",
        disk.latency.0, disk.devices
    )
}
