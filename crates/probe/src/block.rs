//! Block I/O: the requests to each device, and the time that they would have taken on a rotating disk.
//!
//! [`BlockObserver`] sums up request sizes, sequentiality, the mix of reads and writes, and latencies. [`Disk`]
//! computes the cost of the same requests on a model of a disk of 2009.

mod disk;
mod requests;
mod summary;

pub use disk::{Disk, DiskCost, DiskModel};
pub use requests::{BlockObserver, Device, Direction, DirectionSums, Request, SizeClass};
pub use summary::{BlockSummary, DeviceSummary, summarise};
