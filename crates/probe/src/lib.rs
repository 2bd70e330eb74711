//! Observers of a trial: what reclaim, swap, compaction and the page cache did, read from the kernel's own sources.
//!
//! A file per observed source. Every source is read into plain records with units, allocates nothing while the clock
//! runs, closes what it opened on drop, and says [`ProbeError::Unsupported`] on a kernel without it.
//!
//! This crate knows nothing of arenas, records, campaigns or reports: it takes paths and bytes and gives plain data.
//!
//! Where to begin reading:
//! - [`text`]: counters the kernel prints as text (`vmstat`, `zoneinfo`, pressure, …), before, after and as a series.

mod error;
pub mod text;
mod units;

pub use error::ProbeError;
pub use units::{Bytes, Nanos, Pages};
