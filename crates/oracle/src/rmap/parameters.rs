//! Parameters of the model of the kernels and the disk of 2002.

use serde::Serialize;

/// Parameters of the model: processor times, reclaim and the disk. They apply to both kernels.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Parameters {
    /// Number of page frames that the process can use. The paper's machine had about 100 MB, and 25,000 pages fit.
    pub frames: u32,
    /// Processor time of a reference, in nanoseconds. In the paper, a reference copied a whole page: 4 KiB at 400 MB/s.
    pub touch: u64,
    /// Processor time of a page fault, in nanoseconds.
    pub fault: u64,
    /// Processor time of scanning a page during reclaim, in nanoseconds.
    pub scan: u64,
    /// Number of pages that reclaim frees at a time (SWAP_CLUSTER_MAX).
    pub batch: u32,
    /// Number of swap slots that are read at a fault (1 << page_cluster): 8 on a machine with more than 32 MB of
    /// memory.
    pub around: u32,
    /// Time of a seek to the next track, in nanoseconds.
    pub seek_least: u64,
    /// Average seek time as stated by manufacturers, in nanoseconds: the time to seek across a third of the disk.
    pub seek_average: u64,
    /// Time of one rotation in nanoseconds, at 7,200 rotations per minute.
    pub turn: u64,
    /// Time to transfer a page in nanoseconds, at 25 MB/s.
    pub transfer: u64,
    /// Size of the whole disk (40 GB) in pages. Swap is one contiguous range on this disk.
    pub disk_pages: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            frames: 25_600,
            touch: 10_240,
            fault: 5_000,
            scan: 500,
            batch: 32,
            around: 8,
            seek_least: 1_000_000,
            seek_average: 9_000_000,
            turn: 8_333_000,
            transfer: 163_840,
            disk_pages: 10_000_000,
        }
    }
}
