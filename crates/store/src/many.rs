//! Many records at once: files are written, rows worked out and files moved on all processors. The index, which takes one
//! writer, gets the rows when all are on the disk.

use std::path::{Path, PathBuf};

use pagetide_record::{Record, RecordWriter};

use crate::error::StoreError;
use crate::row::Row;
use crate::store;

/// Fewer records than this are not worth a thread.
const WORTH_A_THREAD: usize = 64;

/// A record's complete file, and its row.
pub(crate) type WrittenRecord = (PathBuf, Row);

/// Writes records to this folder, in their order; what is written is not on the disk yet.
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
                scope.spawn(move || some.iter_mut().map(one).collect::<Result<Vec<_>, _>>())
            })
            .collect();
        threads.into_iter().map(joined).collect::<Vec<_>>()
    });
    let mut written = Vec::with_capacity(records.len());
    for part in parts {
        written.extend(part?);
    }
    Ok(written)
}

/// Moves the files to where they lie for good.
pub(crate) fn settle(root: &Path, written: &[WrittenRecord]) -> Result<(), StoreError> {
    let one = |(path, row): &WrittenRecord| store::settle(root, path, &row.id).map(drop);
    std::thread::scope(|scope| {
        let threads: Vec<_> = written
            .chunks(share_of(written.len()))
            .map(|some| scope.spawn(move || some.iter().try_for_each(one)))
            .collect();
        threads.into_iter().try_for_each(joined)
    })
}

/// How many of so many things each thread gets.
fn share_of(all: usize) -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    all.div_ceil(cpus).max(WORTH_A_THREAD)
}

/// What a thread gave; its panic goes on here.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
