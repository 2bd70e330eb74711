//! What a process asks of its own kernel: files of `/proc`, mappings of memory, clocks.
//!
//! One reader for each file, one type for mapped memory, one function for each clock, so that what runs in a guest, in a
//! probe and in the controller reads the same thing in the same way. Readers take what the kernel printed and leave out
//! what they do not understand; they never panic and never guess.
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
