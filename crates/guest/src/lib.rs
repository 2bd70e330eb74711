//! What runs as PID 1 of a guest: prepares the machine, frees the memory that was promised, runs the scenario.
//!
//! The package's program is `/init` of the guest and calls [`main`]; the tool carries it and uses the library for what is
//! said between the two. What it is told lies in two places: [`spec::BootSpec`] in the initial file system (what the
//! snapshot depends on) and [`spec::Order`] through the emulator's configuration ports (what differs from trial to trial). What it answers
//! goes through a shared [`pagetide_record::wire::Region`]. PID 1 never panics: every fault becomes a sentence in the
//! results.
//!
//! This crate knows nothing of emulators beyond five port numbers, and nothing of campaigns or reports. Begin reading
//! in [`init`], which is the guest's life from first to last line.

pub mod ballast;
pub mod error;
pub mod filesystem;
pub mod idle;
pub mod init;
pub mod modules;
pub mod mount;
pub mod observer;
pub mod port;
pub mod region;
pub mod spec;
pub mod start;
pub mod tracearea;
pub mod workload;

pub use error::GuestError;
pub use init::main;
