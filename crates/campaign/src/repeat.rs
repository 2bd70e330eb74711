//! The trial of a record once more.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use pagetide_arena::{Arena, ArenaError, PreparedTrial, Progress, Trial};
use pagetide_compare::{Change, Divergence, differences, first_divergence, largest_change};
use pagetide_outside::remedy;
use pagetide_quantity::command::told;
use pagetide_record::{ArenaKind, Maker, Record, RecordWriter, Subject};
use pagetide_store::{Store, StoreError};
use serde::Serialize;
use tempfile::TempDir;

use crate::command::maker;

/// A trial cannot be repeated.
#[derive(Debug, thiserror::Error)]
pub enum RepeatError {
    /// The kernel of the record is not in the cache and cannot be fetched.
    #[error("kernel {release} of the record cannot be had again")]
    NoKernel {
        /// Its release.
        release: String,
        /// The arena's reason.
        source: ArenaError,
    },
    /// The name of the kernel stands for another one today.
    #[error(
        "{name} stands for another kernel today than the {release} of the record: add that one with {}",
        told("kernel add KERNEL")
    )]
    OtherKernel {
        /// The name.
        name: String,
        /// Release of the record's kernel.
        release: String,
    },
    /// The arena gives no trial twice.
    #[error(
        "record {} is of the {kind} arena, where no trial gives the same twice: only trials without noise can be repeated",
        short(.record)
    )]
    Noise {
        /// The record.
        record: String,
        /// Its arena.
        kind: ArenaKind,
    },
    /// The trial was stopped.
    #[error("stopped before the trial's end")]
    Stopped,
    /// The arena could not do its work.
    #[error(transparent)]
    Arena(ArenaError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no folder for the repetition's file.
    #[error(
        "the store can only be read, and making a folder for temporary files stopped ({source}): {}",
        remedy(.source, Some("TMPDIR"))
    )]
    Elsewhere {
        /// The system's reason.
        source: std::io::Error,
    },
    /// The repetition's file stays behind.
    #[error("removing {path}")]
    Remove {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl RepeatError {
    /// Whether a user's words were wrong, rather than that the machine could not.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::Noise { .. })
    }
}

/// What came of repeating the trial of a record.
#[derive(Clone, Debug, Serialize)]
pub struct Repetitions {
    /// The record.
    pub record: String,
    /// Digest of its results.
    pub digest: String,
    /// How often the trial was run again.
    pub times: u32,
    /// In how many of them the results were the same to the bit.
    pub identical: u32,
    /// What is not as it was when the record was made, a line each.
    pub notes: Vec<String>,
    /// Where the first repetition that differs does so.
    pub first_difference: Option<Divergence>,
    /// The metric that changed most, where several builds of the guest or a fault made the results differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<Change>,
}

impl Display for Repetitions {
    /// A line for each thing, the last without its end.
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

/// Runs the trial of a record again, so many times, and compares each with it. Nothing of it stays in the store.
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
    // Nothing stays, so that a store which can only be read is as good as another.
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

/// What is not as it was when a record was made.
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

/// The first digits of an identity or digest, as lists show it.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// The trial of a record, ready to run. The kernel is asked for by its digest first: the name it had may stand for a newer
/// one today.
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

/// Runs the trial once and returns its record. Nothing of it stays in this folder.
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
