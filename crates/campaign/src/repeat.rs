//! The trial of a record once more.

use std::path::PathBuf;

use pagetide_arena::{Arena, ArenaError, Prepared, Progress, Trial};
use pagetide_record::{Maker, Record, Subject};
use pagetide_store::{Store, StoreError};

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
        "{name} stands for another kernel today than the {release} of the record: add that one with `pagetide kernel add`"
    )]
    OtherKernel {
        /// The name.
        name: String,
        /// Release of the record's kernel.
        release: String,
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
    /// The repetition's file stays behind.
    #[error("removing {path}")]
    Remove {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// The trial of a record, ready to run. The kernel is asked for by its digest first: the name it had may stand for a newer
/// one today.
pub fn prepare_again(arena: &dyn Arena, subject: &Subject) -> Result<Prepared, RepeatError> {
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

/// Runs the trial once and returns its record. Nothing of it stays in the store.
pub fn run_again(
    store: &Store,
    arena: &dyn Arena,
    prepared: &Prepared,
    maker: Maker,
    progress: &dyn Progress,
) -> Result<Record, RepeatError> {
    let mut sink = store.writer()?;
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
