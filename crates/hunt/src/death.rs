//! A kill for lack of memory, and how much memory the kernel could have reclaimed instead.

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{MemoryAtKill, SwapSpec};
use pagetide_workload::Workload;
use serde::Serialize;

/// Divisor: of anonymous pages that are swapped out to zram or zswap, a quarter of the size counts as freed, because
/// most contents of workloads compress to three quarters of their size or less.
const COMPRESSED: u64 = 4;

/// A kill for lack of memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Death {
    /// Name of the process that was killed; empty if the kernel panicked.
    pub process: String,
    /// Virtual time from the start of the scenario to the kill; zero if unknown.
    pub after: Nanos,
    /// Memory at the kill, from the kernel's out-of-memory report; `None` if the log has no complete report.
    pub memory: Option<MemoryAtKill>,
    /// Memory that the kernel could have reclaimed, as a multiple of the smallest amount that counts as memory to
    /// spare. 0 if the log has no complete report, or if the trial's own check found no memory to spare.
    pub spare: f64,
}

impl Death {
    /// Creates the description of a kill of `process` at the time `after`. `workload` and `swap` describe the trial;
    /// `size` is its memory, to which the sizes of the workload relate.
    pub fn new(
        (process, after): (&str, Nanos),
        memory: Option<MemoryAtKill>,
        (workload, size): (Option<&Workload>, Bytes),
        swap: SwapSpec,
    ) -> Self {
        let spare = memory.as_ref().map_or(0.0, |memory| {
            let reclaimable = reclaimable(memory, workload, size, swap);
            let needed = memory.needed.max(Bytes::from_mib(1));
            reclaimable.0 as f64 / needed.0 as f64
        });
        Self {
            process: process.to_owned(),
            after,
            memory,
            spare,
        }
    }

    /// Returns the share of `size`, the trial's memory, that was page cache at the kill, or anonymous memory for which
    /// swap had room, whichever is larger. A true lack of memory leaves neither. 0 if there is no report.
    pub fn left(&self, size: Bytes) -> f64 {
        let Some(memory) = &self.memory else {
            return 0.0;
        };
        let free = memory.swap.map_or(Bytes(0), |[free, _]| free);
        let left = memory.file.max(memory.anon.min(free));
        (left.0 as f64 / size.0.max(1) as f64).clamp(0.0, 1.0)
    }

    /// True if the kernel could have reclaimed enough memory, so that the kill counts as one with memory to spare.
    pub fn is_to_spare(&self) -> bool {
        self.spare >= 1.0
    }
}

/// Returns the size of reclaimable memory: the page cache or what swapping out anonymous memory would free, whichever
/// is larger.
///
/// A kernel report on the whole machine does not show limits of memory cgroups that forbid reclaim. With such a report,
/// no anonymous memory counts if the swap of any memory cgroup is limited, because the limit may be reached while the
/// device has room. Memory that `memory.min` protects is then subtracted too.
fn reclaimable(
    memory: &MemoryAtKill,
    workload: Option<&Workload>,
    size: Bytes,
    swap: SwapSpec,
) -> Bytes {
    let groups = || workload.iter().flat_map(|workload| &workload.groups);
    let free = memory.swap.map_or(Bytes(0), |[free, _]| free);
    let mut swappable = memory.anon.min(free);
    if matches!(swap, SwapSpec::Zram(_) | SwapSpec::Zswap(_)) {
        swappable = Bytes(swappable.0 / COMPRESSED);
    }
    let mut protected = Bytes(0);
    if !memory.is_group {
        if groups().any(|group| !group.swap_max.is_max()) {
            swappable = Bytes(0);
        }
        let each = groups().filter_map(|group| group.min);
        protected = Bytes(each.map(|min| min.of(size).0).sum());
    }
    memory.file.max(swappable).saturating_sub(protected)
}
