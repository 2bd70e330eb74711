//! What can make one variant faster than another.

use std::fmt;

use serde::Serialize;

/// A mechanism of memory management to which a difference in time is attributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// How many evicted pages were needed again.
    EvictionChoice,
    /// The same, and how many waits they took, where the sides began with different amounts of free memory.
    SharedMemory,
    /// How many waits the pages that came back took.
    ReadAhead,
    /// The same, where read-ahead is set alike and the pages lie differently on the device.
    SwapLayout,
    /// How long one wait for the device took, where the devices differ.
    DeviceLatency,
    /// How long requests waited at a device that is the same on both sides.
    DeviceQueue,
    /// Waits outside reclaim that stacks tell the place of.
    SeenWaits,
    /// Waits outside reclaim, of which nothing recorded tells what for.
    UnknownWaits,
    /// Waiting within reclaim that the kernel itself called throttling: for write-back, among others.
    WriteBack,
    /// Waiting within reclaim, without throttling, that stacks tell the place of.
    SeenReclaimWaits,
    /// Waiting within reclaim of which nothing recorded tells what for.
    ReclaimWaits,
    /// Sleeps of tasks that wrote to files faster than the device took it.
    DirtyLimits,
    /// Reclaim done by the workload itself.
    DirectReclaim,
    /// What one reclaimed page cost to find.
    ScanEfficiency,
    /// Compaction, and huge pages that were there or not.
    Compaction,
    /// Waiting for a CPU that kswapd and other kernel threads had.
    BackgroundReclaim,
    /// Page faults that found their page in memory, and system calls.
    Faults,
    /// User mode.
    Compute,
}

impl Mechanism {
    /// All of them.
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

    /// What it means, in one clause.
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
