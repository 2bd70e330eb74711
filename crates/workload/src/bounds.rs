//! Bounds of the language. They keep every workload small enough for a trial: no workload can fill a disk, start
//! processes without end, or run for hours.

use pagetide_quantity::{Bytes, Nanos};

/// Maximum number of processes that a workload starts, forked ones included.
pub const MAX_PROCESSES: u64 = 512;
/// Maximum number of memory cgroups that a workload creates.
pub const MAX_GROUPS: u64 = 64;
/// Maximum number of segments of a process.
pub const MAX_SEGMENTS: usize = 16;
/// Maximum number of phases in the text of a workload, at all depths.
pub const MAX_PHASES: usize = 256;
/// Maximum nesting depth of phases. Those of a process have depth 1, those of a repetition in a fork have depth 3.
pub const MAX_DEPTH: usize = 4;
/// Maximum number of accesses of all processes together.
pub const MAX_ACCESSES: u64 = 1 << 26;
/// Maximum number of names of processes and marks. Each process keeps one bit for each name.
pub const MAX_NAMES: usize = 64;
/// Maximum total size of files on a disk. The guest holds its disk in memory.
pub const MAX_FILES: Bytes = Bytes::from_mib(512);
/// Maximum time limit of a workload, in the guest's time.
pub const MAX_TIME: Nanos = Nanos::from_secs(600);
/// Maximum size of a workload's text.
pub const MAX_TEXT: Bytes = Bytes(64 << 10);
