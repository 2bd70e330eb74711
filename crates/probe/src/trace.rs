//! Tracepoints, from tracefs' binary per-CPU buffers to decoded fields.
//!
//! - [`Tracefs`] and [`Instance`]: an instance of our own, its events, clock and buffers; gone on drop;
//! - [`Capture`]: reads whole sub-buffers without blocking and packs them into a [`TraceFile`];
//! - [`TraceFile`]: formats and raw buffers together, decodable later without the kernel they came from;
//! - [`CpuReader`] and [`Merge`]: the events of one CPU, and of all by time, with losses counted;
//! - [`EventFormat`] and [`FieldAccess`]: what the kernel says an event looks like, turned into precompiled accessors.
//!
//! Nothing here formats text or allocates for each event; damaged data is counted and passed over, never trusted.

mod access;
mod capture;
mod container;
mod format;
mod instance;
mod merge;
mod stack;
#[cfg(feature = "file")]
mod stored;
mod subbuffer;
mod tracefs;

pub use access::{FieldAccess, IdTable, TextAccess};
pub use capture::{Capture, CpuStats, KALLSYMS};
pub use container::{CpuBuffer, StoredFormat, TraceFile, TraceMeta};
pub use format::{EventFormat, Field, FieldShape, PageLayout};
pub use instance::{EventName, Instance, SLEEP_STACK, TraceSettings};
pub use merge::Merge;
pub use stack::{Function, StackAccess};
pub use subbuffer::{CpuReader, Losses, RawEvent, Stride, pack};
pub use tracefs::Tracefs;
