//! The processes of the scenario `workload`: their shared board, their memory, and what they do phase by phase.
//!
//! All processes write to one board in shared memory. The main process reads it to follow their progress, to find
//! those that were killed, and to report the results.

mod actor;
mod board;
mod memory;

pub(crate) use actor::{Stage, note_end, small, value};
pub(crate) use board::{Board, Line, State};
pub(crate) use memory::Library;
