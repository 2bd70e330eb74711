//! Bounds of the language. They keep every workload small enough for a trial: no workload can fill a disk, start
//! processes without end, or run for hours.

use pagetide_quantity::{Bytes, Nanos};

/// Largest number of processes that a workload starts, forked ones included.
pub const MOST_PROCESSES: u64 = 512;
/// Largest number of groups that a workload makes.
pub const MOST_GROUPS: u64 = 64;
/// Largest number of segments of a process.
pub const MOST_SEGMENTS: usize = 16;
/// Largest number of phases in the text of a workload, at all depths.
pub const MOST_PHASES: usize = 256;
/// Largest nesting depth of phases: a repetition in a fork in a process is 3 deep.
pub const MOST_DEPTH: usize = 4;
/// Largest number of accesses of all processes.
pub const MOST_ACCESSES: u64 = 1 << 26;
/// Largest number of names of processes and marks. Each process keeps one bit for each name.
pub const MOST_NAMES: usize = 64;
/// Largest total size of files on a disk. The guest holds its disk in memory.
pub const MOST_FILES: Bytes = Bytes::from_mib(512);
/// Largest time limit of a workload, in the guest's time.
pub const MOST_TIME: Nanos = Nanos::from_secs(600);
/// Largest size of a workload's text.
pub const MOST_TEXT: Bytes = Bytes(64 << 10);
