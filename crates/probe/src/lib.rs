//! Observers of a trial: what reclaim, swap, compaction and the page cache did, read from the kernel's own sources.
//!
//! A file per observed source. Every source is read into plain records with units, allocates nothing while the clock
//! runs, closes what it opened on drop, and says [`ProbeError::Unsupported`] on a kernel without it.
//!
//! This crate knows nothing of arenas, records, campaigns or reports: it takes paths and bytes and gives plain data.
//!
//! Where to begin reading:
//! - [`Probe`]: what every probe does, before, while and after the clock runs; [`Probes`] are all of them;
//! - [`text`]: the probe for numbers the kernel prints as text (`vmstat`, `meminfo`, pressure, …), one file a source;
//! - [`trace`]: tracefs' binary ring buffers, from capture to decoded fields;
//! - [`meaning`]: what decoded events say: begin/end pairs, the reclaim table, where a task's time went;
//! - [`observed`]: what an observed trial leaves in its record;
//! - [`block`]: block requests, and what they would have cost on a disk with seeks.

pub mod block;
mod error;
pub mod meaning;
pub mod observed;
mod probe;
pub mod text;
pub mod trace;

pub use error::ProbeError;
pub use probe::{Finding, MissingSource, Probe, Probes, Scope};
