//! Tracepoints, from the binary per-CPU buffers of tracefs to decoded fields.
//!
//! - [`Tracefs`] and [`Instance`]: a private trace instance with its events, clock and buffers; removed on drop;
//! - [`Capture`]: reads whole sub-buffers without blocking and packs them into a [`TraceFile`];
//! - [`TraceFile`]: formats and raw buffers together, which can be decoded later without the kernel that wrote them;
//! - [`CpuReader`] and [`Merge`]: the events of one CPU, and of all CPUs by time, with a count of lost events;
//! - [`EventFormat`] and [`FieldAccess`]: the kernel's description of an event, compiled into accessors.
//!
//! Nothing here formats text or allocates for each event. Damaged data is counted and skipped.

mod access;
mod capture;
mod container;
mod event_name;
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
pub use container::{CpuBuffer, Function, StoredFormat, TraceFile, TraceMeta};
pub use event_name::{EventName, SLEEP_STACK};
pub use format::{EventFormat, Field, FieldShape, PageLayout};
pub use instance::{Instance, TraceSettings};
pub use merge::Merge;
pub use stack::StackAccess;
pub use subbuffer::{CpuReader, Losses, RawEvent, Stride, pack};
pub use tracefs::Tracefs;
