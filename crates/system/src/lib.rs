//! Access to the running kernel: files of `/proc`, memory mappings, clocks, child processes.
//!
//! There is one reader for each file, one type for mapped memory and one function for each clock, so that guest, probes
//! and controller read a file in the same way. Readers ignore lines that do not match the format. They never panic, and
//! never guess a value.
//!
//! This crate depends on `quantity` only. Begin reading in [`Counters`] (files of names and numbers) and [`Mapping`].

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
