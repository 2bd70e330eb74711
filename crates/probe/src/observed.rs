//! Names and types of what an observed trial stores in its record. An arena writes it, the analysis reads it.

use serde::{Deserialize, Serialize};

use pagetide_quantity::Nanos;

/// Name of the blob with the trace, in the format of [`crate::trace::TraceFile::write`].
pub const TRACE: &str = "trace";
/// Name of the blob with the processes of the workload: a JSON list of [`crate::meaning::TaskAccounting`], the main
/// process first.
pub const TASKS: &str = "tasks";
/// Name of the blob with the phases of the scenario: a JSON list of [`PhaseBegin`], in order.
pub const PHASES: &str = "phases";

/// Begin of a phase in the scenario, such as `swap-in`. The phase lasts until the next phase begins, or until the
/// scenario ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseBegin {
    /// Name of the phase.
    pub name: String,
    /// Time at which the phase began, on the trace's clock.
    pub begin: Nanos,
}
