//! Mechanisms that can make one variant faster than another.

use std::fmt;

use serde::Serialize;

/// A mechanism of memory management that can cause a difference in time between two variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Number of evicted pages that were needed again.
    EvictionChoice,
    /// Number of evicted pages that were needed again, and number of waits for them, if the sides started with
    /// different amounts of free memory.
    SharedMemory,
    /// Number of waits for the pages that were read back.
    ReadAhead,
    /// Number of waits for the pages that were read back, if read-ahead settings are equal but the contiguity of pages
    /// on the device differs.
    SwapLayout,
    /// Time of one wait for the device, if the swap devices of the sides differ, or if both are the same disk other
    /// than the simulated SSD.
    DeviceLatency,
    /// Time of requests in the queue of zram or of a simulated SSD that is the same on both sides.
    DeviceQueue,
    /// Waits outside reclaim for which stacks show the kernel functions that slept.
    SeenWaits,
    /// Waits outside reclaim with an unknown cause.
    UnknownWaits,
    /// Waits within reclaim that the kernel reports as throttling, for example for write-back.
    WriteBack,
    /// Waits within reclaim other than throttling, for which stacks show the kernel functions that slept.
    SeenReclaimWaits,
    /// Waits within reclaim other than throttling, with an unknown cause.
    ReclaimWaits,
    /// Sleeps of tasks that wrote to files faster than the device could (`balance_dirty_pages`).
    DirtyLimits,
    /// Time of direct reclaim in tasks of the workload.
    DirectReclaim,
    /// Cost of finding one reclaimable page.
    ScanEfficiency,
    /// Time of compaction, and the effect of more or fewer huge pages.
    Compaction,
    /// Waiting for a CPU on which kswapd or another task outside the workload runs, except kcompactd.
    BackgroundReclaim,
    /// Page faults whose page did not come from a device, and system calls.
    Faults,
    /// Time in user mode.
    Compute,
}

impl Mechanism {
    /// All mechanisms.
    pub const ALL: [Self; 18] = [
        Self::EvictionChoice,
        Self::SharedMemory,
        Self::ReadAhead,
        Self::SwapLayout,
        Self::DeviceLatency,
        Self::DeviceQueue,
        Self::SeenWaits,
        Self::UnknownWaits,
        Self::WriteBack,
        Self::SeenReclaimWaits,
        Self::ReclaimWaits,
        Self::DirtyLimits,
        Self::DirectReclaim,
        Self::ScanEfficiency,
        Self::Compaction,
        Self::BackgroundReclaim,
        Self::Faults,
        Self::Compute,
    ];

    /// Returns the meaning of the mechanism as a clause.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::EvictionChoice => "how many evicted pages were needed again",
            Self::SharedMemory => {
                "how many evicted pages were needed again, and in how many waits, with another amount of memory free at the start"
            }
            Self::ReadAhead => "how many waits the pages that came back took",
            Self::SwapLayout => {
                "how many waits the pages that came back took, with read-ahead set alike"
            }
            Self::DeviceLatency => "how long one wait for the device took",
            Self::DeviceQueue => {
                "how long requests waited at the device, which is the same on both sides"
            }
            Self::SeenWaits => {
                "time blocked outside reclaim that no request to a device accounts for, by the kernel functions that slept"
            }
            Self::UnknownWaits => {
                "time blocked outside reclaim that no request to a device accounts for; what the tasks slept on was not recorded"
            }
            Self::WriteBack => "time that the kernel throttled reclaim, mostly for write-back",
            Self::SeenReclaimWaits => {
                "time blocked within reclaim without throttling, by the kernel functions that slept"
            }
            Self::ReclaimWaits => {
                "time blocked within reclaim without throttling; what the tasks slept on was not recorded"
            }
            Self::DirtyLimits => {
                "time that writers to files were held until enough of what they wrote was on its device"
            }
            Self::DirectReclaim => "reclaim that the workload had to do itself",
            Self::ScanEfficiency => "what it cost to find a page to reclaim",
            Self::Compaction => "compacting memory, and whether blocks were there",
            Self::BackgroundReclaim => "waiting for a CPU that kernel threads had",
            Self::Faults => "page faults without I/O, and system calls",
            Self::Compute => "user mode",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EvictionChoice => "refaults and eviction choice",
            Self::SharedMemory => "memory shared with others",
            Self::ReadAhead => "swap-in I/O and read-ahead",
            Self::SwapLayout => "swap layout",
            Self::DeviceLatency => "device latency",
            Self::DeviceQueue => "queueing at the device",
            Self::SeenWaits => "waits outside reclaim",
            Self::UnknownWaits => "waits outside reclaim, cause not recorded",
            Self::WriteBack => "throttled reclaim (write-back)",
            Self::SeenReclaimWaits => "waits within reclaim",
            Self::ReclaimWaits => "waits within reclaim, cause not recorded",
            Self::DirtyLimits => "writers held by the dirty limits",
            Self::DirectReclaim => "direct-reclaim stalls",
            Self::ScanEfficiency => "scan efficiency",
            Self::Compaction => "compaction and fragmentation",
            Self::BackgroundReclaim => "background reclaim on the CPU",
            Self::Faults => "page faults and system calls",
            Self::Compute => "compute",
        })
    }
}
