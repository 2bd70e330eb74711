//! The result of a trial: schema, record file and wire format.
//!
//! A [`Record`] is everything that one trial produced, immutable once written. Its [`Subject`] says what was tried, its
//! [`Maker`] with which program, and its results are metrics, counters, histograms, series and blobs. The digest of the
//! record covers these results: two exact trials of the same subject have equal digests on any machine.
//!
//! This crate does not depend on arenas, statistics or reports; all of them use it. Begin reading in [`subject`] (what
//! determines a trial) and [`record`] (the result), then [`mod@file`] (the format on disk) and [`wire`] (the format in
//! which a guest returns it).

pub mod cpus;
pub mod disk;
#[cfg(feature = "file")]
pub mod file;
pub mod files;
pub mod nodes;
pub mod oom;
pub mod outcome;
pub mod record;
pub mod setting;
pub mod subject;
pub mod swap;
pub mod text;
pub mod tier_pages;
pub mod trace_ring;
pub mod wire;

pub use cpus::{CpusError, CpusSpec};
pub use disk::{DiskError, DiskSpec};
#[cfg(feature = "file")]
pub use file::{FileError, RecordReader, RecordWriter};
pub use files::{FileSystem, FilesError, FilesOn, FilesSpec};
pub use nodes::{Node, NodesError, NodesSpec};
pub use oom::{MemoryAtKill, OomReport};
pub use outcome::{Invalid, Warning};
pub use record::{Counters, Halts, Machine, Maker, Record, Results, Wall};
pub use subject::{ArenaKind, ArenaSpec, KernelId, MemorySpec, Pass, Subject, Variant};
pub use swap::{Compressor, Pool, SwapDisk, SwapError, SwapSpec, SwapTiers, Zswap};
pub use trace_ring::{TraceRing, TraceRingError};
