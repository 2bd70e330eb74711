//! The file of the index: opening, deleting, and filling it from record files.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagetide_outside::{FileOrigin, Refusal};
use pagetide_record::RecordReader;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{StoreError, TransactionError, at, index};
use crate::files::{all_files, place};
use crate::schema::PATIENCE;
use crate::{row, schema};

/// Opens the index in SQLite's write-ahead mode, so that other processes can read while one process writes. Creates a
/// missing index file.
pub(crate) fn connect(path: &Path) -> Result<Connection, StoreError> {
    for file in files_of_index(path) {
        // The path must be a regular file: SQLite would follow a symbolic link, and block on a pipe.
        match pagetide_outside::open(&file, FileOrigin::Own) {
            Err(why) if Refusal::of(&why).is_some() => return Err(at("opening", &file)(why)),
            _ => {}
        }
    }
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(64);
        // SQLite switches to the write-ahead log without waiting for locks of other processes, so the switch is
        // retried.
        let mut tries = 0;
        loop {
            let mode = connection
                .query_row("PRAGMA journal_mode = WAL", [], |row| {
                    row.get::<_, String>(0)
                })
                .optional();
            match mode {
                Err(error)
                    if tries < 500
                        && error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) =>
                {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        // The index can be rebuilt from the record files, so a power failure may lose its last rows.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "cache_size", -32_768)?;
        schema::version(&connection)?;
        Ok(connection)
    };
    open().map_err(index(path))
}

/// Returns the paths of the index and of SQLite's two auxiliary files.
pub(crate) fn files_of_index(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

/// Deletes the file of the index and SQLite's auxiliary files. A missing file is not an error.
pub(crate) fn remove_index(path: &Path) -> Result<(), StoreError> {
    for file in files_of_index(path) {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(at("removing", &file)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Empties the index and fills it from all record files. If `whole` is true, reads and checks all sections of the
/// files. The caller must have opened a transaction.
pub(crate) fn fill(index: &Connection, root: &Path, whole: bool) -> Result<(), TransactionError> {
    schema::create(index)?;
    for path in all_files(root)? {
        enter(index, root, &path, whole)?;
    }
    Ok(())
}

/// Adds a record file to the index, or to the list of damaged files if it cannot be read or has the wrong path. Does
/// nothing if the file is gone. If `whole` is true, reads and checks all sections of the file. The caller must have
/// opened a transaction.
pub(crate) fn enter(
    index: &Connection,
    root: &Path,
    path: &Path,
    whole: bool,
) -> rusqlite::Result<()> {
    let read = || -> Result<RecordReader, String> {
        let reader = RecordReader::open(path).map_err(|why| why.to_string())?;
        if whole {
            reader.verify().map_err(|why| why.to_string())?;
        }
        let place = place(root, &reader.record().id());
        if path.starts_with(root.join("records")) && path != place {
            return Err(format!("its place is {}: move it there", place.display()));
        }
        Ok(reader)
    };
    // The path within the store is saved, because the store's folder can be moved or renamed.
    let within = path.strip_prefix(root).unwrap_or(path);
    let within = within.as_os_str().as_bytes();
    match read() {
        Ok(reader) => {
            index
                .prepare_cached("DELETE FROM damaged WHERE path = ?1")?
                .execute([within])?;
            row::insert(index, reader.record())
        }
        // Another process has moved the file to its final path. There it will be found.
        Err(_) if !path.exists() => Ok(()),
        Err(why) => {
            index
                .prepare_cached("INSERT OR REPLACE INTO damaged (path, why) VALUES (?1, ?2)")?
                .execute(params![within, why])?;
            Ok(())
        }
    }
}
