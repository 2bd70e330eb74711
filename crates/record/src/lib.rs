//! What a trial produced: the schema, the record file and the wire format.
//!
//! A [`Record`] is all that one trial produced, immutable once written. Its [`Subject`] says what was tried, its
//! [`Maker`] with what, its results are metrics, counters, histograms, series and blobs. Everything but [`Wall`] is
//! under the record's digest: two exact trials of the same subject have equal digests on any machine.
//!
//! This crate knows nothing of arenas, statistics or reports: it is what they all share. Begin reading in
//! [`subject`] (what determines a trial) and [`record`] (what comes out), then [`mod@file`] (how it lies on disk) and [`wire`] (how
//! it leaves a guest).

pub mod disk;
#[cfg(feature = "file")]
pub mod file;
pub mod files;
pub mod outcome;
pub mod record;
pub mod setting;
pub mod subject;
pub mod swap;
pub mod trace_ring;
pub mod wire;

pub use disk::{DiskError, DiskSpec};
#[cfg(feature = "file")]
pub use file::{FileError, RecordReader, RecordWriter};
pub use files::{FileSystem, FilesError, FilesOn, FilesSpec};
pub use outcome::{Invalid, Warning};
pub use record::{Counters, Halts, Machine, Maker, Record, Results, Wall};
pub use subject::{ArenaKind, ArenaSpec, KernelId, MemorySpec, Pass, Subject, Variant};
pub use swap::{Compressor, Pool, SwapDisk, SwapError, SwapSpec, Zswap};
pub use trace_ring::{TraceRing, TraceRingError};
