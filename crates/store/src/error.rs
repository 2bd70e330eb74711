//! Errors of the store, with remedies.

use std::io;
use std::path::{Path, PathBuf};

use pagetide_outside::{Refusal, remedy};
use pagetide_quantity::command::in_backticks;
use pagetide_record::FileError;

use crate::proof::Disagreement;
use crate::schema::{FORMAT, PATIENCE};

/// Reasons why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No store folder was given, and the environment has no variable to derive one from.
    #[error(
        "the store has no folder, because neither PAGETIDE_STORE, XDG_DATA_HOME nor HOME is set: set one of them"
    )]
    NoHome,
    /// A file or folder cannot be read or written, for example because it is read-only, full, or not a folder.
    #[error("{what} {path}: {source}; {}", remedy(.source, Some("PAGETIDE_STORE")))]
    Folder {
        /// The attempted operation, such as "creating".
        what: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file `format` does not contain a version that this program knows, usually because a later version of
    /// pagetide wrote the store.
    #[error(
        "the store {path} was written by a newer pagetide (format {found}, this one knows {FORMAT}): upgrade pagetide, or name another folder with PAGETIDE_STORE"
    )]
    Newer {
        /// Path of the store's folder.
        path: PathBuf,
        /// Begin of the text in the file `format`.
        found: String,
    },
    /// The index cannot be opened or written, for example because the disk is full.
    #[error("writing the index {path}: {source}; {}", index_remedy(.source))]
    IndexFull {
        /// Path of the index.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// Another process has locked the index for longer than this process waits.
    #[error(
        "another pagetide has kept the index {path} locked for {seconds} s: wait for it to end, then try again"
    )]
    Busy {
        /// Path of the index.
        path: PathBuf,
        /// Time that this process waited, in seconds.
        seconds: u64,
    },
    /// Another error of SQLite: usually the index is damaged, or is not a database of this program.
    #[error(
        "reading the index {path}: {source}; run {}",
        in_backticks("store rebuild")
    )]
    Index {
        /// Path of the index.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// A row of the index does not match its checksum, or differs from the record that it describes.
    #[error(
        "the index {path} does not agree with record {id}: run {}, which asks the records",
        in_backticks("store rebuild")
    )]
    Disagrees {
        /// Path of the index.
        path: PathBuf,
        /// ID of the record, or `in row N` if the ID cannot be read.
        id: String,
    },
    /// The file of a record is missing.
    #[error("the file {path} of record {id} is gone, deleted by hand: it is left out from now on")]
    Gone {
        /// ID of the record.
        id: String,
        /// The path at which the file was expected.
        path: PathBuf,
    },
    /// The store cannot be written, so the operation was refused.
    #[error("the store {path} can be read but not written ({why}): {}", remedy(&(*.why).into(), Some("PAGETIDE_STORE")))]
    ReadOnly {
        /// Path of the store's folder.
        path: PathBuf,
        /// The operating system's reason when the store was opened.
        why: io::ErrorKind,
    },
    /// A file that was to be written would not be readable afterwards.
    #[error(
        "{path} is not written, for it could not be read again ({why}): give names and values that a store can keep"
    )]
    Unreadable {
        /// Path of the file that was not written.
        path: PathBuf,
        /// The reason why the content cannot be read again, as text.
        why: String,
    },
    /// The file `format`, which states the version of the store, is empty, not text, or begins with no digit.
    #[error("{path} is {what}: remove it, the store's records are kept and it is made anew")]
    Format {
        /// Path of the file `format`.
        path: PathBuf,
        /// What is wrong with the content of the file.
        what: &'static str,
    },
    /// A record file cannot be read or written.
    #[error(transparent)]
    Record(#[from] FileError),
    /// No record has an ID that begins with this prefix.
    #[error(
        "no record's id begins with `{prefix}`: {} shows them",
        in_backticks("list records")
    )]
    Unknown {
        /// The prefix that the user gave.
        prefix: String,
    },
    /// A name is neither that of a campaign nor a prefix of a record's ID.
    #[error(
        "neither a campaign nor a record is called `{name}`: {}",
        nearest.as_ref().map_or_else(
            || format!("{} and {} show what there is", in_backticks("list campaigns"), in_backticks("list records")),
            |near| format!("did you mean `{near}`?")
        )
    )]
    Neither {
        /// The name that the user gave.
        name: String,
        /// The most similar campaign ID; `None` if none is similar.
        nearest: Option<String>,
    },
    /// A folder named for merging is not a store.
    #[error("{path} is no store: it has no folder `records`; give the folder that --store named")]
    NoStore {
        /// Path of the folder that is not a store.
        path: PathBuf,
    },
    /// A folder named for merging is this store itself.
    #[error("{path} is this store itself: give the folders of other stores")]
    Itself {
        /// Path of the folder, which is this store's.
        path: PathBuf,
    },
    /// Several records have IDs that begin with this prefix.
    #[error("`{prefix}` is the beginning of {count} record ids ({some}): give more of it")]
    Ambiguous {
        /// The prefix that the user gave.
        prefix: String,
        /// Number of records with this prefix.
        count: u64,
        /// The first matching records, at most four, each with scenario, variant and seed, as text. Ends with `…` if
        /// there are more.
        some: String,
    },
    /// Another process runs this campaign.
    #[error(
        "campaign {name} is being run by process {process}: wait for it to end, or give the campaign another name"
    )]
    Running {
        /// Name of the campaign.
        name: String,
        /// Id of the running process, as text; empty if unknown.
        process: String,
    },
    /// A campaign's file is empty or damaged, cannot be parsed, or describes another campaign.
    #[error(
        "{path} does not say what campaign it was ({why}): remove it and run the campaign again, its records are kept"
    )]
    Note {
        /// Path of the campaign's file.
        path: PathBuf,
        /// What is wrong with the file, as text.
        why: String,
    },
}

impl StoreError {
    /// True if a name or folder that the user gave is wrong. False for all other errors, also for an unknown or
    /// ambiguous prefix of a record's ID ([`StoreError::Unknown`], [`StoreError::Ambiguous`]).
    pub fn is_user_error(&self) -> bool {
        matches!(
            self,
            Self::Neither { .. } | Self::NoStore { .. } | Self::Itself { .. }
        )
    }

    /// Returns the reason why the store can only be opened for reading; `None` if this error also prevents reading.
    pub(crate) fn why_read_only(&self) -> Option<io::ErrorKind> {
        match self {
            // An error that is a `Refusal` prevents reading as well as writing.
            Self::Folder { source, .. } if Refusal::of(source).is_none() => Some(source.kind()),
            Self::IndexFull { source, .. } => Some(kind_of(source)),
            _ => None,
        }
    }

    /// Converts an error of writing a record file into a store error. For an I/O error, its message names a remedy.
    pub fn writing(error: FileError) -> Self {
        match error {
            FileError::Io { what, path, source } => Self::Folder { what, path, source },
            other => Self::Record(other),
        }
    }
}

/// Returns the kind of I/O error that prevented SQLite from writing; `Other` unless it is a full disk, a read-only file
/// or a lack of permission.
fn kind_of(source: &rusqlite::Error) -> io::ErrorKind {
    use rusqlite::ErrorCode as Code;
    match source.sqlite_error_code() {
        Some(Code::DiskFull) => io::ErrorKind::StorageFull,
        Some(Code::ReadOnly) => io::ErrorKind::ReadOnlyFilesystem,
        Some(Code::PermissionDenied) => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    }
}

/// Returns advice for the user if SQLite cannot write the index, as text.
fn index_remedy(source: &rusqlite::Error) -> String {
    remedy(&kind_of(source).into(), Some("PAGETIDE_STORE"))
}

/// An error inside a transaction.
pub(crate) enum TransactionError {
    /// An error of SQLite.
    Index(rusqlite::Error),
    /// An error of the store.
    Store(StoreError),
}

impl From<rusqlite::Error> for TransactionError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

impl From<StoreError> for TransactionError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Returns a function that adds the path and the attempted operation to an I/O error.
pub fn at<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::Folder {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Returns a function that converts an error of SQLite on the index at `path` into the store error with the right
/// remedy.
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
                seconds: PATIENCE.as_secs(),
            },
            _ => StoreError::Index { path, source },
        }
    }
}
