//! Exact profiles: how many instructions each function, task and call stack of a guest executed during a scenario.
//!
//! In exact time, one instruction takes one nanosecond. So the time of the scenario is the number of instructions of
//! all functions, plus the instructions of the idle loop while every task waits. The exact arena makes a [`Profile`]
//! from the counts of an emulator plugin, and stores it in the record of a profiled pass. [`account()`] splits the
//! difference between two profiles into lines that add up to it.
//!
//! [`Recorded`] reads the references to pages that the same plugin can record.
//!
//! This crate knows nothing of emulators, records and reports. Start reading in [`Profile`].

mod account;
mod annotation;
mod coverage;
mod export;
mod flame;
mod group;
mod lock;
mod pprof;
mod profile;
mod references;
mod tally;
mod wait;

pub use account::{Account, FunctionChange, Line, WAITS, account};
pub use annotation::{ANNOTATION, AnnotatedInstruction, Annotation, SourceLine};
pub use coverage::{Coverage, CoveredFunction, CoveredLine};
pub use export::{folded, folded_difference, perf_script, speedscope};
pub use flame::{FlameError, flame_difference, flame_graph};
pub use group::{Group, NOT_GROUPED, group_of, is_memory_management};
pub use lock::LockChange;
pub use pprof::pprof;
pub use profile::{
    Function, Holder, LockWait, NO_SYMBOL, Node, PROFILE, Profile, ProfileError, QueueWait, SMALL,
    UNNAMED, USER, Wait,
};
pub use references::{
    AddressRange, Checks, Damon, EventKind, Evictions, Header, Item, Kind, Mapping, PageEvent,
    PageFaults, PageRow, Paging, REFERENCES, ReadAhead, Recorded, RecordedError, Region, Run,
    Summary, TaskReferences, Window,
};
pub use tally::{Symbol, Tally, TallyNode, TallyQueue, TallySleep, function_name};
pub use wait::Cause;
