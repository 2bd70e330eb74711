//! Access to the running kernel: files of `/proc`, memory mappings, clocks.
//!
//! There is one reader for each file, one type for mapped memory and one function for each clock, so that guest, probes and
//! controller read the same thing in the same way. Readers skip lines they do not understand; they never panic and never guess.
//!
//! This crate knows only quantities. Begin reading in [`Counters`] (files that are names and numbers) and [`Mapping`].

pub mod clock;
pub mod counters;
pub mod cpuinfo;
pub mod free;
pub mod idle;
mod mapping;
pub mod maps;
pub mod meminfo;
pub mod pagemap;
pub mod scan;
pub mod swaps;
pub mod zram;

pub use counters::{Counters, Delta, Syntax};
pub use mapping::{Mapping, Source};
