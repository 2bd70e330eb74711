//! Runs one prepared trial and writes its record.

use std::path::PathBuf;
use std::time::Instant;

use pagetide_arena::{Arena, ArenaError, PreparedTrial, Progress, Trial};
use pagetide_quantity::Nanos;
use pagetide_record::{KernelId, Maker, Record, RecordWriter};
use pagetide_store::StoreError;

use crate::run::RunError;

/// What the record says about a trial besides its results.
#[derive(Clone, Copy)]
pub(crate) struct Circumstances<'a> {
    /// ID of the campaign that the trial runs for.
    pub campaign: &'a str,
    /// The trial as it was requested.
    pub trial: &'a Trial,
    /// The kernel as the user named it; `None` if the prepared trial contains that name already.
    pub kernel: Option<&'a KernelId>,
    /// Number of trials that are running when this trial starts, including this trial.
    pub side_by_side: u32,
    /// Function that returns the [`Maker`] of a trial's record: pagetide's version, and the command that repeats the
    /// trial.
    pub maker: &'a dyn Fn(&Trial) -> Maker,
}

/// Runs a prepared trial and writes its record to `sink`. Returns the path of the record file, and the record.
pub(crate) fn finish(
    arena: &dyn Arena,
    prepared: &PreparedTrial,
    mut sink: RecordWriter,
    progress: &dyn Progress,
    of: Circumstances<'_>,
) -> Result<(PathBuf, Record), RunError> {
    let (started, clock) = (Nanos::wall_clock(), Instant::now());
    let finding = arena.run(prepared, &mut sink, progress);
    let mut finding = finding.map_err(|error| match error {
        ArenaError::Sink(error) => RunError::Store(StoreError::writing(error)),
        other => RunError::Arena(other),
    })?;
    let wall = &mut finding.wall;
    of.campaign.clone_into(&mut wall.campaign);
    wall.unit = of.trial.unit;
    wall.repetition = of.trial.repetition;
    wall.side_by_side = of.side_by_side;
    if wall.started.0 == 0 {
        wall.started = started;
    }
    let elapsed =
        |since: Instant| Nanos(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
    // Bulk sections are already written; only the record itself remains to be written.
    wall.to_stored = elapsed(finding.ended);
    if wall.total.0 == 0 {
        wall.total = elapsed(clock);
    }
    let mut record = prepared.record((of.maker)(of.trial), finding);
    if let Some(kernel) = of.kernel {
        record.subject.variant.kernel.clone_from(kernel);
    }
    let path = sink.finish(&mut record).map_err(StoreError::writing)?;
    Ok((path, record))
}
