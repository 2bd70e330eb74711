//! Access to the running kernel: files of `/proc`, memory mappings, clocks, child processes.
//!
//! The readers of a file, the clocks and the type for mapped memory each have one place here, so that guest, probes and
//! controller read a file in the same way. Readers ignore lines that do not match the format, and do not panic. The
//! functions say what they return for a file that cannot be read.
//!
//! Of pagetide's crates it uses `quantity` only. Begin reading in [`Counters`] (names with numbers) and [`Mapping`].

pub mod child;
pub mod clock;
pub mod counters;
pub mod cpuinfo;
pub mod free;
pub mod idle;
pub mod limits;
mod mapping;
pub mod maps;
pub mod meminfo;
pub mod pagemap;
pub mod scan;
pub mod swaps;
pub mod zram;

pub use counters::{Counters, Delta, Syntax};
pub use mapping::{Mapping, Source};
