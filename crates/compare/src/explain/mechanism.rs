//! What can make one variant faster than another.

use std::fmt;

use serde::Serialize;

/// A mechanism of memory management to which a difference in time is attributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// How many evicted pages were needed again.
    EvictionChoice,
    /// The same, where the sides began with different amounts of free memory.
    SharedMemory,
    /// How many waits the pages that came back took.
    ReadAhead,
    /// The same, where read-ahead is set alike and the pages lie differently on the device.
    SwapLayout,
    /// How long one wait for the device took.
    DeviceLatency,
    /// How long one wait took where nothing was read from a device that takes time: for pages that others had locked or
    /// were writing.
    LockedPages,
    /// Waiting within reclaim, throttled or for pages under write-back.
    WriteBack,
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
    pub const ALL: [Self; 13] = [
        Self::EvictionChoice,
        Self::SharedMemory,
        Self::ReadAhead,
        Self::SwapLayout,
        Self::DeviceLatency,
        Self::LockedPages,
        Self::WriteBack,
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
                "how many evicted pages were needed again, with another amount of memory free at the start"
            }
            Self::ReadAhead => "how many waits the pages that came back took",
            Self::SwapLayout => {
                "how many waits the pages that came back took, with read-ahead set alike"
            }
            Self::DeviceLatency => "how long one wait for the device took",
            Self::LockedPages => {
                "how long one wait for a page took that others had locked or were writing, with no device to wait for"
            }
            Self::WriteBack => "waiting within reclaim, throttled or for pages under write-back",
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
            Self::LockedPages => "waits for locked pages",
            Self::WriteBack => "write-back waits",
            Self::DirectReclaim => "direct-reclaim stalls",
            Self::ScanEfficiency => "scan efficiency",
            Self::Compaction => "compaction and fragmentation",
            Self::BackgroundReclaim => "background reclaim on the CPU",
            Self::Faults => "page faults and system calls",
            Self::Compute => "compute",
        })
    }
}
