//! The guest's program, built by this crate's build script (`build/guest.rs`).
//!
//! It is a crate without dependencies, so that its build, which is the longest step of a build from nothing, can run
//! first. As a part of the crate that uses it, cargo started it last.

/// The program that runs as `/init` in every guest.
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest"));
