//! Adding or reading many records together. To add records, threads on all processors write the files, compute the rows
//! and move the files. The rows are inserted into the index by one thread, after all files are on disk.

use std::path::{Path, PathBuf};

use pagetide_record::{Record, RecordWriter};

use crate::error::StoreError;
use crate::files;
use crate::row::Row;

/// Minimum number of records for each thread; the last thread may have fewer.
const WORTH_A_THREAD: usize = 64;

/// The path of a record's complete file, and its row in the index.
pub(crate) type WrittenRecord = (PathBuf, Row);

/// Writes records to `folder` with several threads and returns paths and rows in the same order. If one record cannot
/// be written, the files of all of them are deleted. The files are not flushed to disk yet.
pub(crate) fn write(
    folder: &Path,
    records: &mut [Record],
) -> Result<Vec<WrittenRecord>, StoreError> {
    let one = |record: &mut Record| -> Result<WrittenRecord, StoreError> {
        let writer = RecordWriter::create(folder).map_err(StoreError::writing)?;
        let path = writer
            .finish_unsynced(record)
            .map_err(StoreError::writing)?;
        Ok((path, Row::of(record)))
    };
    let share = share_of(records.len());
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> = records
            .chunks_mut(share)
            .map(|some| {
                scope.spawn(move || {
                    let mut written = Vec::with_capacity(some.len());
                    let ended = some.iter_mut().try_for_each(|record| {
                        written.push(one(record)?);
                        Ok(())
                    });
                    (written, ended)
                })
            })
            .collect();
        threads.into_iter().map(joined).collect::<Vec<_>>()
    });
    let mut written = Vec::with_capacity(records.len());
    let mut ended = Ok(());
    for (some, of_part) in parts {
        written.extend(some);
        ended = ended.and(of_part);
    }
    if ended.is_err() {
        // If one record fails, none may stay: the next process that opens the store would add the files that were left.
        for (path, _) in &written {
            let _ = std::fs::remove_file(path);
        }
    }
    ended.map(|()| written)
}

/// Reads the records with these IDs, with several threads. Returns the records in the order of `ids`. `read` reads one
/// record.
pub(crate) fn records(
    ids: &[String],
    read: impl Fn(&str) -> Result<Record, StoreError> + Sync,
) -> Vec<Result<Record, StoreError>> {
    let read = &read;
    std::thread::scope(|scope| {
        let threads: Vec<_> = ids
            .chunks(share_of(ids.len()))
            .map(|some| scope.spawn(move || some.iter().map(|id| read(id)).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(joined).collect()
    })
}

/// Moves written record files to their final paths, with several threads.
pub(crate) fn settle(root: &Path, written: &[WrittenRecord]) -> Result<(), StoreError> {
    let one = |(path, row): &WrittenRecord| files::settle(root, path, &row.id).map(drop);
    std::thread::scope(|scope| {
        let threads: Vec<_> = written
            .chunks(share_of(written.len()))
            .map(|some| scope.spawn(move || some.iter().try_for_each(one)))
            .collect();
        threads.into_iter().try_for_each(joined)
    })
}

/// Returns the number of items for each thread if `all` items are divided among the processors that this process may
/// use; at least [`WORTH_A_THREAD`].
fn share_of(all: usize) -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    all.div_ceil(cpus).max(WORTH_A_THREAD)
}

/// Waits for a thread and returns the thread's result. If the thread panicked, panics too.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
