//! Page maps of a process, and how its swapped pages lie on the device.
//!
//! [`Pagemap`] reads entries in batches, [`scan`](PageScan) asks the kernel for ranges where it can, [`PageFlags`] looks at
//! the physical page, [`SwapLayout`] turns swap offsets into contiguity, run lengths and jumps.

mod flags;
mod layout;
mod map;
mod scan;

pub use flags::{FLAG_NAMES, PageFlags, PhysicalPage};
pub use layout::{LayoutPoint, RunClass, SwapLayout};
pub use map::{PAGE_SIZE, PageEntry, Pagemap, SwapSlot};
pub use scan::{Categories, PageRegion, PageScan};
