//! One task of a batch, on a node of the cluster.

use pagetide_arena::{Arena, ArenaError, Progress, Trial};
use pagetide_record::{Maker, RecordWriter, Subject};
use pagetide_store::StoreError;

use super::folder::{BatchFolder, Task, TaskTrial};
use crate::finish::{Circumstances, finish};
use crate::run::RunError;

/// Why a task ended early. The records of its earlier trials are stored.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The node would run a different trial than the one planned, because its emulator, its kernel or its build of
    /// pagetide differs from that of the submitting machine.
    #[error(
        "this node would run another trial than was planned: {what}; leave such nodes out, or install the same on all"
    )]
    OtherNode {
        /// What differs between the node and the submitting machine.
        what: String,
    },
    /// A signal stopped the task.
    #[error("stopped before its last trial")]
    Stopped,
    /// A trial could not be prepared or run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The batch's folder could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The node on which a task runs.
pub struct Node<'a> {
    /// The arena of the node.
    pub arena: &'a dyn Arena,
    /// Function that puts the kernel and the file system image of a trial into the node's cache.
    pub stage: &'a dyn Fn(&TaskTrial) -> Result<(), ArenaError>,
    /// Function that returns the [`Maker`] of a trial's record: pagetide's version, and the command that repeats the
    /// trial.
    pub maker: &'a dyn Fn(&Trial) -> Maker,
    /// Receives the progress of trials and can stop them.
    pub progress: &'a dyn Progress,
}

/// Runs the trials of a task that have no record yet, one after another. If it fails, the caller writes the reason into
/// the batch's folder with [`BatchFolder::fail`], for the submitting process.
pub fn work(folder: &BatchFolder, number: u32, node: &Node<'_>) -> Result<(), TaskError> {
    folder.begin(number);
    let task = folder.task(number)?;
    for trial in &task.trials {
        if node.progress.is_stopped() {
            return Err(TaskError::Stopped);
        }
        if folder.record(&trial.name)?.is_none() {
            run(folder, &task, trial, node)?;
        }
    }
    Ok(())
}

fn run(
    folder: &BatchFolder,
    task: &Task,
    trial: &TaskTrial,
    node: &Node<'_>,
) -> Result<(), TaskError> {
    (node.stage)(trial).map_err(RunError::Arena)?;
    let asked = &trial.planned.trial;
    let mut here = asked.clone();
    // On this node the kernel's name may stand for another kernel, or for none. So the digest is used.
    here.variant.kernel.clone_from(&trial.kernel.digest);
    let prepared = crate::run::prepared(node.arena, &here)?;
    if prepared.subject().key() != trial.key {
        let what = difference(trial, prepared.subject());
        return Err(TaskError::OtherNode { what });
    }
    let sink = RecordWriter::create(&folder.work()).map_err(StoreError::writing)?;
    let circumstances = Circumstances {
        campaign: &task.campaign,
        trial: asked,
        kernel: Some(&trial.kernel),
        side_by_side: 1,
        maker: node.maker,
    };
    let (path, record) = match finish(node.arena, &prepared, sink, node.progress, circumstances) {
        Err(RunError::Arena(ArenaError::Stopped)) => return Err(TaskError::Stopped),
        other => other?,
    };
    folder.deliver(&trial.name, &path, &record.id())?;
    Ok(())
}

/// Describes the difference between a trial as planned and the trial that this node would run.
fn difference(planned: &TaskTrial, here: &Subject) -> String {
    let differs = |what: &str, here: &str, planned: &str| {
        (here != planned)
            .then(|| format!("its {what} is {here}, and the campaign was planned with {planned}"))
    };
    let kernel = (&here.variant.kernel.digest, &planned.kernel.digest);
    differs("emulator", &here.arena.emulator, &planned.emulator)
        .or_else(|| differs("kernel", kernel.0, kernel.1))
        .unwrap_or_else(|| "the program pagetide is of another build".to_owned())
}
