//! What an observed trial leaves behind: names of its parts, shared by the guest that writes and the analysis that reads.

use serde::{Deserialize, Serialize};

use pagetide_quantity::Nanos;

/// Name of the blob that holds the trace, as [`crate::trace::TraceFile::write`] writes it.
pub const TRACE: &str = "trace";
/// Name of the blob that holds the processes of the workload: a JSON list of [`crate::meaning::TaskAccounting`], the main
/// process first.
pub const TASKS: &str = "tasks";
/// Name of the blob that holds the phases of the scenario: a JSON list of [`PhaseBegin`], in order.
pub const PHASES: &str = "phases";

/// A phase of the scenario, such as `swap-in`; it lasts until the next one begins, the last one until the scenario ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseBegin {
    /// What the scenario calls it.
    pub name: String,
    /// When it began, on the trace's clock.
    pub begin: Nanos,
}
