//! Updates the index after records were deleted from, added to or copied into the store's folders by hand.
//!
//! A folder is skipped if its modification time has not changed since the last check. So opening a large store again
//! costs one `stat` for each of its at most 256 folders.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params};

use crate::error::TransactionError;
use crate::files::entries;
use crate::index::enter;
use crate::row;

/// Age below which a folder's modification time is not trusted: a file added within the same tick of the clock does not
/// change it.
const FRESH: Duration = Duration::from_secs(1);

/// A folder of records whose modification time differs from the one in the index.
pub(crate) struct Folder {
    name: String,
    path: PathBuf,
    /// Modification time in nanoseconds since 1970; `None` if the folder is only in the index.
    changed: Option<i64>,
}

/// Returns the modification time of a folder in nanoseconds since 1970; `None` if the path is not that of a folder.
fn changed(path: &Path) -> Option<i64> {
    let data = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_dir)?;
    Some(
        data.mtime()
            .wrapping_mul(1_000_000_000)
            .wrapping_add(data.mtime_nsec()),
    )
}

/// Returns the folders of records whose modification times differ from those in the index, including folders that are
/// not in the index yet or no longer exist.
pub(crate) fn folders(index: &Connection, root: &Path) -> Result<Vec<Folder>, TransactionError> {
    let mut there = BTreeMap::new();
    for path in entries(&root.join("records"))? {
        let name = path.file_name().and_then(|name| name.to_str());
        if let (Some(name), Some(changed)) = (name, changed(&path)) {
            there.insert(name.to_owned(), (path.clone(), changed));
        }
    }
    let known = index
        .prepare_cached("SELECT name, changed FROM folder")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<BTreeMap<String, i64>>>()?;
    let gone = known.keys().filter(|name| !there.contains_key(*name));
    let gone: Vec<Folder> = gone
        .map(|name| Folder {
            name: name.clone(),
            path: root.join("records").join(name),
            changed: None,
        })
        .collect();
    let other = there
        .into_iter()
        .filter(|(name, (_, changed))| known.get(name) != Some(changed))
        .map(|(name, (path, changed))| Folder {
            name,
            path,
            changed: Some(changed),
        });
    Ok(other.chain(gone).collect())
}

/// Compares a folder with the index. Returns the IDs of records that only the index has, and the paths of record files
/// that only the folder has.
pub(crate) fn differences(
    index: &Connection,
    folder: &Folder,
) -> Result<(Vec<String>, Vec<PathBuf>), TransactionError> {
    let mut files = BTreeMap::new();
    if folder.changed.is_some() {
        for path in entries(&folder.path)? {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if let (Some(stem), Some("record")) = (stem, path.extension().and_then(|e| e.to_str()))
            {
                files.insert(stem.to_owned(), path.clone());
            }
        }
    }
    // IDs are hexadecimal, so those with this prefix are smaller than the prefix followed by `g`.
    let ids = index
        .prepare_cached("SELECT id FROM record WHERE id >= ?1 AND id < ?1 || 'g'")?
        .query_map([&folder.name], |row| row.get(0))?
        .collect::<rusqlite::Result<BTreeSet<String>>>()?;
    let gone = ids.iter().filter(|id| !files.contains_key(*id));
    let gone = gone.cloned().collect();
    files.retain(|stem, _| !ids.contains(stem));
    Ok((gone, files.into_values().collect()))
}

/// Adds new records of the changed folders to the index. Removes records whose files are missing, unless `is_there`
/// finds the file elsewhere in the store. The caller must have opened a transaction.
pub(crate) fn bring(
    index: &Connection,
    root: &Path,
    folders: &[Folder],
    is_there: impl Fn(&str) -> bool,
) -> Result<(), TransactionError> {
    for folder in folders {
        let (gone, new) = differences(index, folder)?;
        for id in gone.iter().filter(|id| !is_there(id)) {
            row::remove(index, id)?;
        }
        for path in &new {
            enter(index, root, path, false)?;
        }
        note(index, folder)?;
    }
    Ok(())
}

/// Stores a folder's modification time in the index, or 0 if it is less than [`FRESH`] old, because the folder may
/// change again within the same tick of the clock. Removes the row of a folder that no longer exists.
fn note(index: &Connection, folder: &Folder) -> rusqlite::Result<()> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let settled = i64::try_from(now.saturating_sub(FRESH).as_nanos()).unwrap_or(i64::MAX);
    match folder.changed {
        Some(changed) if changed < settled => index
            .prepare_cached("INSERT OR REPLACE INTO folder (name, changed) VALUES (?1, ?2)")?
            .execute(params![folder.name, changed]),
        // No folder has the time 0, so this one is checked again next time, and noticed if it disappears.
        Some(_) => index
            .prepare_cached("INSERT OR REPLACE INTO folder (name, changed) VALUES (?1, 0)")?
            .execute([&folder.name]),
        None => index
            .prepare_cached("DELETE FROM folder WHERE name = ?1")?
            .execute([&folder.name]),
    }?;
    Ok(())
}
