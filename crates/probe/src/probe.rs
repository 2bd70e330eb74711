//! The `Probe` trait: reads one source of data before, during and after a trial.

use pagetide_quantity::{Nanos, Series};

use crate::ProbeError;

/// Observes one source over a trial. It reads the source before the trial, samples it while the trial runs, and reads
/// it again afterwards.
pub trait Probe {
    /// Returns the name that the source has in the record.
    fn name(&self) -> &str;

    /// Reads the state before the trial; called just before the clock starts.
    fn before(&mut self) -> Result<(), ProbeError>;

    /// Adds a sample taken at `time`. Must not allocate, because the clock runs and memory is being measured.
    fn sample(&mut self, time: Nanos) -> Result<(), ProbeError>;

    /// Reads the state after the trial, and returns everything that was observed.
    fn after(self: Box<Self>) -> Result<ProbeResult, ProbeError>;
}

/// Everything that a probe observed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProbeResult {
    /// Numbers by name, each with its value before and its value after the trial.
    pub counters: Vec<(String, [u64; 2])>,
    /// Numbers over time; `None` if no samples were requested.
    pub series: Option<Series>,
}
