//! Probes for a trial: what reclaim, swap, compaction and the page cache did, read from the kernel's own sources.
//!
//! There is one file per source. Every source is read into plain records with units, allocates nothing while the clock
//! runs, and closes what it opened on drop. On a kernel without the source it returns [`ProbeError::Unsupported`].
//!
//! This crate does not depend on arenas, records, campaigns or reports: it takes paths and bytes and returns plain
//! data.
//!
//! Where to begin reading:
//! - [`Probe`]: what every probe does before, while and after the clock runs; [`Probes`] is the set of all probes;
//! - [`text`]: the probe for numbers that the kernel prints as text (`vmstat`, `meminfo`, pressure, …), one file per
//!   source;
//! - [`trace`]: the binary ring buffers of tracefs, from capture to decoded fields;
//! - [`meaning`]: the interpretation of decoded events: begin/end pairs, the reclaim table, and where a task's time
//!   went;
//! - [`observed`]: what an observed trial stores in its record;
//! - [`block`]: block requests, and what they would have cost on a rotating disk.

pub mod block;
mod error;
pub mod meaning;
pub mod observed;
mod probe;
mod probes;
pub mod text;
pub mod trace;

pub use error::ProbeError;
pub use probe::{Probe, ProbeResult};
pub use probes::{MissingSource, Probes, Scope};
