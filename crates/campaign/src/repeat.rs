//! Repeats the trial of a record, and compares the results.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use pagetide_arena::{Arena, ArenaError, PreparedTrial, Progress, Trial};
use pagetide_compare::{Change, Divergence, differences, first_divergence, largest_change};
use pagetide_outside::remedy;
use pagetide_quantity::command::told;
use pagetide_record::{ArenaKind, Maker, Record, RecordWriter, Subject};
use pagetide_store::{Store, StoreError, short};
use serde::Serialize;
use tempfile::TempDir;

use crate::command::maker;

/// Why a trial cannot be repeated.
#[derive(Debug, thiserror::Error)]
pub enum RepeatError {
    /// The record's kernel is not in the cache and cannot be fetched.
    #[error("kernel {release} of the record is no longer available")]
    NoKernel {
        /// Release of the record's kernel.
        release: String,
        /// The arena's reason.
        source: ArenaError,
    },
    /// The name of the record's kernel now stands for another kernel.
    #[error(
        "{name} stands for another kernel today than the {release} of the record: add that one with {}",
        told("kernel add KERNEL")
    )]
    OtherKernel {
        /// Name of the kernel.
        name: String,
        /// Release of the record's kernel.
        release: String,
    },
    /// The arena has noise, so its trials cannot be repeated exactly.
    #[error(
        "record {} is of the {kind} arena, where no trial gives the same twice: only trials without noise can be repeated",
        short(.record)
    )]
    Noise {
        /// Identity of the record.
        record: String,
        /// Kind of arena that made the record.
        kind: ArenaKind,
    },
    /// The trial was stopped.
    #[error("stopped before the trial's end")]
    Stopped,
    /// The arena could not prepare or run a trial.
    #[error(transparent)]
    Arena(ArenaError),
    /// Reading or writing the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No folder can be made for the repetition's record file.
    #[error(
        "the store can only be read, and making a folder for temporary files stopped ({source}): {}",
        remedy(.source, Some("TMPDIR"))
    )]
    Elsewhere {
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The repetition's record file cannot be removed.
    #[error("removing {path}")]
    Remove {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

impl RepeatError {
    /// True if the user's input was wrong, as opposed to a failure of the machine.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::Noise { .. })
    }
}

/// Result of repeating the trial of a record.
#[derive(Clone, Debug, Serialize)]
pub struct Repetitions {
    /// Identity of the record.
    pub record: String,
    /// Digest of the record's results.
    pub digest: String,
    /// Number of repetitions.
    pub times: u32,
    /// Number of repetitions whose results were bit-identical.
    pub identical: u32,
    /// A sentence for each difference between the conditions of the record and of the repetitions.
    pub notes: Vec<String>,
    /// The first difference in the first repetition whose results differ; `None` if all are identical.
    pub first_difference: Option<Divergence>,
    /// The primary metric that changed most, if the results differ because of another build of the guest or a fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<Change>,
}

impl Display for Repetitions {
    /// Writes one line for each item, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} repetitions are identical to {} (digest {})",
            self.identical,
            self.times,
            short(&self.record),
            short(&self.digest)
        )?;
        for note in &self.notes {
            write!(f, "\nnote: {note}")?;
        }
        if let Some(difference) = &self.first_difference {
            write!(f, "\nfirst difference: {difference}")?;
        }
        if let Some(largest) = &self.largest {
            write!(f, "\nlargest change of a metric that decides: {largest}")?;
        }
        Ok(())
    }
}

/// Runs the trial of a record `times` times again, and compares each repetition with the record. The repetitions are
/// not kept in the store.
pub fn repeat(
    store: &Store,
    arena: &dyn Arena,
    record: &Record,
    times: u32,
    progress: &dyn Progress,
) -> Result<Repetitions, RepeatError> {
    if arena.has_noise() {
        return Err(RepeatError::Noise {
            record: record.id(),
            kind: record.subject.arena.kind,
        });
    }
    let prepared = prepare_again(arena, &record.subject)?;
    let mut all = Repetitions {
        record: record.id(),
        digest: record.digest.clone(),
        times: 0,
        identical: 0,
        notes: notes(&record.subject, prepared.subject()),
        first_difference: None,
        largest: None,
    };
    // Repetitions are not kept, so the store may be read-only.
    let elsewhere = store.is_read_only().then(tempfile::tempdir).transpose();
    let elsewhere = elsewhere.map_err(|source| RepeatError::Elsewhere { source })?;
    let incoming = store.folder().join("incoming");
    let folder = elsewhere.as_ref().map_or(&*incoming, TempDir::path);
    for _ in 0..times {
        let again = run_again(folder, arena, &prepared, maker(prepared.trial()), progress)?;
        if again.digest == record.digest {
            all.identical += 1;
        } else if all.first_difference.is_none() {
            all.first_difference = Some(first_divergence(record, &again));
            all.largest = largest_change(record, &again);
        }
        all.times += 1;
    }
    Ok(all)
}

/// A sentence for each difference between the record's conditions `then` and the present conditions `now`.
fn notes(then: &Subject, now: &Subject) -> Vec<String> {
    let mut notes: Vec<String> = differences(then, now)
        .iter()
        .map(ToString::to_string)
        .collect();
    if then.arena.guest != now.arena.guest {
        notes.push(format!(
            "the guest programs differ ({} then, {} now): another guest is another trajectory, and results move with it",
            short(&then.arena.guest),
            short(&now.arena.guest)
        ));
    }
    if then.arena.cmdline != now.arena.cmdline {
        notes.push("the kernel's command line is not the same".to_owned());
    }
    notes
}

/// Prepares the trial of a record again. The kernel is looked up by its digest first, because its name may now stand
/// for a newer kernel.
fn prepare_again(arena: &dyn Arena, subject: &Subject) -> Result<PreparedTrial, RepeatError> {
    let wanted = &subject.variant.kernel;
    for name in [&wanted.digest, &wanted.source] {
        match arena.prepare(&Trial::again(subject, name)) {
            Ok(found) if found.subject().variant.kernel.digest == wanted.digest => {
                return Ok(found);
            }
            Err(source) if name == &wanted.source => {
                let release = wanted.release.clone();
                return Err(RepeatError::NoKernel { release, source });
            }
            Ok(_) | Err(_) => {}
        }
    }
    Err(RepeatError::OtherKernel {
        name: wanted.source.clone(),
        release: wanted.release.clone(),
    })
}

/// Runs the trial once and returns its record. The record's file in `folder` is removed.
fn run_again(
    folder: &Path,
    arena: &dyn Arena,
    prepared: &PreparedTrial,
    maker: Maker,
    progress: &dyn Progress,
) -> Result<Record, RepeatError> {
    let mut sink = RecordWriter::create(folder).map_err(StoreError::writing)?;
    let finding = match arena.run(prepared, &mut sink, progress) {
        Err(ArenaError::Stopped) => return Err(RepeatError::Stopped),
        other => other.map_err(RepeatError::Arena)?,
    };
    let mut record = prepared.record(maker, finding);
    let path = sink
        .finish(&mut record)
        .map_err(|error| RepeatError::Arena(error.into()))?;
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(record),
        Err(source) => Err(RepeatError::Remove { path, source }),
    }
}
