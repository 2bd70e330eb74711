//! The program that runs as PID 1 of a guest: it prepares the machine, makes the specified amount of memory free, and
//! runs the scenario.
//!
//! The program of this package is the guest's `/init` and calls [`main`]. The pagetide tool embeds this program, and
//! uses the library for the data that tool and guest exchange. The guest reads [`spec::BootSpec`], which the snapshot
//! depends on, from the initial file system, and [`spec::Order`], which differs between trials, from the emulator's
//! configuration ports. It answers through a shared [`pagetide_record::wire::Region`]. PID 1 does not panic: an error
//! becomes a sentence, on the console until the guest is ready, and in the results after that.
//!
//! Of emulators, this crate knows the addresses of a few devices; it does not depend on campaigns or reports. Begin
//! reading in [`init`], which contains the steps of the guest in order.

pub mod ballast;
pub mod disk;
pub mod error;
pub mod files;
pub mod filesystem;
pub mod idle;
pub mod init;
pub mod keeper;
pub mod kernel_memory;
pub mod maker;
pub mod modules;
pub mod mount;
pub mod nodes;
pub mod observer;
pub mod port;
pub mod region;
pub mod root;
pub mod size;
pub mod spec;
pub mod ssd;
pub mod start;
pub mod tiers;
pub mod tracearea;
pub mod turns;
pub mod workload;

pub use error::GuestError;
pub use init::main;
