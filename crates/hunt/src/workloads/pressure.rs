//! Whether a workload is likely to make the kernel reclaim memory.

use pagetide_quantity::Bytes;
use pagetide_workload::{Phase, Workload};

use super::parts::memory;

/// Share of memory, in percent, from which on the segments of all processes make the kernel reclaim.
const FULL: u64 = 90;

/// True if the segments of all processes together need nearly all memory or more, a memory cgroup has a limit, or a
/// phase asks the kernel to reclaim.
pub(super) fn is_likely(workload: &Workload) -> bool {
    let memory = memory(workload);
    let is_limited = workload
        .groups
        .iter()
        .any(|group| !group.max.is_max() || !group.high.is_max());
    let mut processes = workload.processes.iter();
    is_limited
        || size(workload, memory).0 >= memory.0 / 100 * FULL
        || processes.any(|process| asks(&process.phases))
}

/// Returns the size of the segments of all processes.
fn size(workload: &Workload, memory: Bytes) -> Bytes {
    let of_each = workload.processes.iter().map(|process| {
        let segments = process.segments.iter();
        let sum: u64 = segments.map(|segment| segment.size.of(memory).0).sum();
        sum * u64::from(process.count)
    });
    Bytes(of_each.sum())
}

/// True if a phase asks the kernel to reclaim.
fn asks(phases: &[Phase]) -> bool {
    phases.iter().any(|phase| match phase {
        Phase::Reclaim { .. } => true,
        other => asks(other.inner()),
    })
}
