//! Simulates how an ideal policy or a textbook replacement policy handles given references in a given amount of memory.
//!
//! A [`ReferenceString`] is a string of references with dense page numbers, read once and shared by all policies and
//! sizes. A [`Choice`] names a policy with its parameters; [`simulate`] runs several of them at several sizes on all
//! cores. [`curve`] computes the faults at every size in one pass, for LRU and for OPT.
//!
//! This crate knows nothing about kernels, scenarios, records or reports: a page is a number, memory is a number of
//! pages.
//!
//! Begin reading at `policy.rs`, then any file in `policy/`. The data structures that make the policies fast are in
//! `tokens.rs`, `lists.rs` and `queue.rs`.

mod answer;
pub mod curve;
mod error;
mod fewest_writes;
mod flat;
mod ingest;
mod known;
mod lists;
mod memory;
mod number;
mod policy;
mod queue;
pub mod rmap;
mod run;
mod string;
mod sweep;
mod tokens;
mod wide;
mod writes;

pub use answer::{Answer, Bound, Line, ask, ask_costing, headroom};
pub use error::{ParameterError, ReferenceError, ReferenceErrorKind, WriteCostError};
pub use ingest::{Column, Format, Take};
pub use known::{UnknownReferences, known};
pub use memory::memory_at_hand;
pub use policy::{About, Choice, POLICIES, Parameter, Simulator, find};
pub use run::{Job, Outcome, simulate, workers};
pub use string::ReferenceString;
pub use sweep::{choices, sweep};
pub use writes::{WriteCost, Writes};

/// Maximum number of distinct pages in a string: 2^28, which is 1 TiB with pages of 4 KiB.
pub const MAX_PAGES: u32 = 1 << 28;

/// Maximum number of references in a string: few enough that times fit in 32 bits.
pub const MAX_REFERENCES: u64 = u32::MAX as u64 - 1;

/// Maximum number of pages that one entry of a file may cover: 2^20 pages, which are 4 GiB.
pub(crate) const MAX_PAGES_AT_ONCE: u64 = 1 << 20;
