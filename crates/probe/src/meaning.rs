//! Interpretation of decoded events.
//!
//! [`Decoder`] turns raw events into [`Event`]s, with accessors compiled from the formats stored in the trace. So the
//! offset of a field may change, and an event that a kernel lacks is known to be missing. [`ReclaimObserver`] sums the
//! events up. [`ReclaimTable`] is the table of reclaim statistics with its cross-checks. [`Attribution`] divides a
//! task's time into parts. [`analyse`] does all of this for a stored trace.

mod attribution;
mod catalogue;
mod crosscheck;
mod decoder;
mod event;
mod observer;
mod pairs;
mod rows;
mod sleep;
mod table;

pub use attribution::{
    Attribution, Part, Parts, QueueWait, SiteSleeps, TaskAccounting, TaskTime, Waits, attribute,
    attribute_within,
};
pub use catalogue::{ATTRIBUTION_EVENTS, BLOCK_EVENTS, RECLAIM_EVENTS};
pub use crosscheck::{CrossCheck, TOLERANCE_PERCENT};
pub use decoder::{Absence, Decoder};
pub use event::{Event, Reclaimer, TraceEvent};
pub use observer::{Compaction, MemcgReclaim, ReclaimObserver, ReclaimSums, TaskReclaim};
pub use pairs::{PairKind, PairTimes, Pairs};
pub use rows::{RowId, RowUnit, Section};
pub use sleep::{SiteNumber, SleepSite, SleepSites};
pub use table::{CpuTimes, PairRow, ReclaimTable, Row, Value, analyse};
