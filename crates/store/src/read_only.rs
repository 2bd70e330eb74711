//! Opens a store that cannot be written (read-only or full) for reading.
//!
//! The index file is opened as immutable. If it is missing or not up to date, an index is built in memory.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::catch_up::{differences, folders};
use crate::error::{StoreError, TransactionError, index};
use crate::index::fill;
use crate::schema;

/// Opens the index file of a store that cannot be written, or builds an index in memory.
pub(crate) fn connect(root: &Path, database: &Path) -> Result<Connection, StoreError> {
    if let Ok(Some(kept)) = as_it_lies(root, database) {
        return Ok(kept);
    }
    let made = Connection::open_in_memory().map_err(index(database))?;
    match fill(&made, root, false) {
        Ok(()) => Ok(made),
        Err(TransactionError::Index(error)) => Err(index(database)(error)),
        Err(TransactionError::Store(error)) => Err(error),
    }
}

/// Opens the index file as immutable. `None` if the index does not match the record files, has tables of another
/// version, or has changes in the write-ahead log.
fn as_it_lies(root: &Path, database: &Path) -> Result<Option<Connection>, TransactionError> {
    let log = database.with_extension("sqlite-wal");
    if std::fs::metadata(log).is_ok_and(|data| data.len() > 0) {
        // Changes in the write-ahead log would be missed.
        return Ok(None);
    }
    let mut path = String::new();
    for byte in database.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(byte) {
            path.push(char::from(*byte));
        } else {
            let _ = write!(path, "%{byte:02x}");
        }
    }
    let kept = Connection::open_with_flags(
        format!("file:{path}?immutable=1"),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
    )?;
    if schema::version(&kept)? != schema::VERSION {
        return Ok(None);
    }
    for folder in folders(&kept, root)? {
        let (gone, new) = differences(&kept, &folder)?;
        if !gone.is_empty() || !new.is_empty() {
            return Ok(None);
        }
    }
    Ok(Some(kept))
}
