//! What the store refuses, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use pagetide_record::FileError;

use crate::proof::Disagreement;
use crate::store::FORMAT;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No folder is named and none can be derived.
    #[error(
        "the store has no folder, because neither PAGETIDE_STORE, XDG_DATA_HOME nor HOME is set: set one of them"
    )]
    NoHome,
    /// The folder cannot be read or written: read-only, full, or not a folder.
    #[error(
        "{what} {path}: {source}; free space there, or name a writable folder with PAGETIDE_STORE"
    )]
    Folder {
        /// What was attempted, such as "creating".
        what: &'static str,
        /// File or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A later version of pagetide wrote the store.
    #[error(
        "the store {path} was written by a newer pagetide (format {found}, this one knows {FORMAT}): upgrade pagetide, or name another folder with PAGETIDE_STORE"
    )]
    Newer {
        /// The store's folder.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// The index cannot take more.
    #[error(
        "writing the index {path}: {source}; free space there, or name a writable folder with PAGETIDE_STORE"
    )]
    IndexFull {
        /// The index.
        path: PathBuf,
        /// SQLite's reason.
        source: rusqlite::Error,
    },
    /// Another process holds the index for too long.
    #[error(
        "another pagetide has kept the index {path} locked for {seconds} s: wait for it to end, then try again"
    )]
    Busy {
        /// The index.
        path: PathBuf,
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// The index is damaged or not what it should be.
    #[error("reading the index {path}: {source}; run `pagetide store rebuild`")]
    Index {
        /// The index.
        path: PathBuf,
        /// SQLite's reason.
        source: rusqlite::Error,
    },
    /// A row of the index does not say what its record said.
    #[error(
        "the index {path} does not agree with record {id}: run `pagetide store rebuild`, which asks the records"
    )]
    Disagrees {
        /// The index.
        path: PathBuf,
        /// The record, as far as it is known.
        id: String,
    },
    /// The file of a record is gone.
    #[error("the file {path} of record {id} is gone, deleted by hand: it is left out from now on")]
    Gone {
        /// The record.
        id: String,
        /// Where it lay.
        path: PathBuf,
    },
    /// The store can only be read.
    #[error("the store {path} can be read but not written: free space there, or make it writable")]
    ReadOnly {
        /// The store's folder.
        path: PathBuf,
    },
    /// The file that says of which format a store is says nothing.
    #[error("{path} is {what}: remove it, the store's records are kept and it is made anew")]
    Format {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// A record file cannot be read or written.
    #[error(transparent)]
    Record(#[from] FileError),
    /// No record has an identity that begins so.
    #[error("no record's id begins with `{prefix}`: `pagetide list records` shows them")]
    Unknown {
        /// What was given.
        prefix: String,
    },
    /// A name is neither a campaign's nor a record's.
    #[error(
        "neither a campaign nor a record is called `{name}`: {}",
        nearest.as_ref().map_or_else(
            || "`pagetide list campaigns` and `pagetide list records` show what there is".to_owned(),
            |near| format!("did you mean `{near}`?")
        )
    )]
    Neither {
        /// What was given.
        name: String,
        /// The nearest campaign.
        nearest: Option<String>,
    },
    /// Several records' identities begin so.
    #[error("`{prefix}` is the beginning of {count} record ids ({some}): give more of it")]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// How many there are.
        count: u64,
        /// The first of them, each with its trial.
        some: String,
    },
    /// Another process runs this campaign.
    #[error(
        "campaign {name} is being run by process {process}: wait for it to end, or give the campaign another name"
    )]
    Running {
        /// Name of the campaign.
        name: String,
        /// Process id, as far as known.
        process: String,
    },
    /// What is known of a campaign cannot be understood.
    #[error(
        "{path} does not say what campaign it was ({why}): remove it and run the campaign again, its records are kept"
    )]
    Note {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl StoreError {
    /// Whether a user's words were wrong, rather than that the store could not answer.
    pub fn is_by_words(&self) -> bool {
        matches!(self, Self::Neither { .. })
    }

    /// Says of a record that could not be written what the user can do about the store.
    pub fn writing(error: FileError) -> Self {
        match error {
            FileError::Io { what, path, source } => Self::Folder { what, path, source },
            other => Self::Record(other),
        }
    }
}

/// What can go wrong within a transaction.
pub(crate) enum Trouble {
    /// SQLite refused.
    Index(rusqlite::Error),
    /// Something beside it.
    Store(StoreError),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Adds path and attempt to an I/O error.
pub(crate) fn at<'a>(
    what: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::Folder {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Sorts SQLite's reasons by what the user can do.
pub(crate) fn index(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
    use rusqlite::ErrorCode as Code;
    move |source| {
        let path = path.to_owned();
        if let rusqlite::Error::FromSqlConversionFailure(_, _, why) = &source
            && let Some(Disagreement { id }) = why.downcast_ref()
        {
            return StoreError::Disagrees {
                path,
                id: id.clone(),
            };
        }
        match source.sqlite_error_code() {
            Some(
                Code::DiskFull
                | Code::ReadOnly
                | Code::CannotOpen
                | Code::SystemIoFailure
                | Code::PermissionDenied,
            ) => StoreError::IndexFull { path, source },
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => StoreError::Busy {
                path,
                seconds: crate::store::PATIENCE.as_secs(),
            },
            _ => StoreError::Index { path, source },
        }
    }
}
