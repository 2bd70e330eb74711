//! Block I/O: what was asked of a device, and what the same would have cost on a disk with seeks.
//!
//! [`BlockObserver`] adds up request sizes, sequentiality, the mix of reads and writes, and times; [`Disk`] serves the
//! same requests on a modelled disk of 2009.

mod disk;
mod requests;
mod summary;

pub use disk::{Disk, DiskCost, DiskModel};
pub use requests::{BlockObserver, Device, Direction, DirectionSums, Request, SizeClass};
pub use summary::{BlockSummary, DeviceSummary, summarise};
