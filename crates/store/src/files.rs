//! The files and folders of a store: paths, listing, writing, moving and the version of the layout.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pagetide_outside::FileOrigin;

use crate::error::{StoreError, at};
use crate::schema::FORMAT;

/// Maximum size of the file `format` in bytes.
pub(crate) const MAX_FORMAT_BYTES: u64 = 4096;

/// Fails if the file `format` does not state a version that this program can read: also if it is empty, begins with no digit or is
/// unreadable. A missing file is not an error.
pub(crate) fn check_format(root: &Path) -> Result<(), StoreError> {
    let path = root.join("format");
    match pagetide_outside::read_text(&path, FileOrigin::Own, MAX_FORMAT_BYTES) {
        Ok(text) if text.trim().parse().is_ok_and(|found: u32| found <= FORMAT) => Ok(()),
        Ok(text) if text.trim().is_empty() => Err(StoreError::Format {
            path,
            what: "empty",
        }),
        Ok(text) if !text.trim().starts_with(|c: char| c.is_ascii_digit()) => {
            Err(StoreError::Format {
                path,
                what: "no number",
            })
        }
        Ok(text) => Err(StoreError::Newer {
            path: root.to_owned(),
            found: text.trim().chars().take(20).collect(),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(StoreError::Format {
            path,
            what: "no text",
        }),
        Err(error) => Err(at("opening", &path)(error)),
    }
}

/// Replaces the content of a file atomically: a reader sees the old or the new content.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    pagetide_outside::replace(path, bytes).map_err(at("writing", path))
}

/// Deletes a file. A missing file is not an error.
pub(crate) fn remove_if_present(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(at("removing", path)(why)),
        _ => Ok(()),
    }
}

/// Moves a complete record file to its final path in the store at `root`, and returns this path. Does not write the
/// index; the record is added to it when the store is opened or refreshed. The tasks of a batch, which may run on other
/// machines, use this function, because they must not write the index.
pub fn deposit(root: &Path, path: &Path, id: &str) -> Result<PathBuf, StoreError> {
    settle(root, path, id)
}

/// Moves the file of a record to its final path, and returns this path; also if another process has moved it there.
/// Does not change the index.
pub(crate) fn settle(root: &Path, path: &Path, id: &str) -> Result<PathBuf, StoreError> {
    let place = place(root, id);
    let mut moved = std::fs::rename(path, &place);
    if moved.is_err()
        && let Some(folder) = place.parent()
    {
        // The folder does not exist yet, or another process has moved the file.
        std::fs::create_dir_all(folder).map_err(at("creating", folder))?;
        moved = std::fs::rename(path, &place);
    }
    match moved {
        Ok(()) => Ok(place),
        // Another process has opened the store in the meantime and moved the file.
        Err(_) if place.exists() => Ok(place),
        Err(error) => Err(at("moving a record to", &place)(error)),
    }
}

/// Returns the current path of a record's file: the path in `incoming` if the file was not moved yet, otherwise the
/// final path, whether or not the file exists.
pub(crate) fn path(root: &Path, id: &str) -> PathBuf {
    let place = place(root, id);
    if place.exists() {
        return place;
    }
    // A record that is in the index but was not moved yet is still in `incoming`.
    let waiting = root.join("incoming").join(format!("{id}.record"));
    if waiting.exists() { waiting } else { place }
}

/// Returns the final path of a record's file, whether or not the file exists.
pub(crate) fn place(root: &Path, id: &str) -> PathBuf {
    let folder = id.get(..2).unwrap_or("xx");
    root.join("records")
        .join(folder)
        .join(format!("{id}.record"))
}

/// Returns the sorted paths of all complete record files. `incoming` is listed first, so that files moved in the
/// meantime are found at their final path.
pub(crate) fn all_files(root: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = entries(&root.join("incoming"))?;
    for folder in entries(&root.join("records"))? {
        if folder.is_dir() {
            files.extend(entries(&folder)?);
        }
    }
    files.retain(|path| path.extension().is_some_and(|e| e == "record"));
    files.sort_unstable();
    Ok(files)
}

/// Returns the paths of all entries of a folder, unordered.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    std::fs::read_dir(folder)
        .map_err(at("reading", folder))?
        .map(|entry| {
            entry
                .map(|entry| entry.path())
                .map_err(at("reading", folder))
        })
        .collect()
}

/// True if the process that writes a temporary file still runs on this machine. The process ID is in the name of the
/// file: after the last dot before the extension (`quick.PID.new`), or else before the first hyphen (`PID-….part`).
pub(crate) fn has_writer(file: &Path) -> bool {
    let stem = file
        .file_stem()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
    let pid = number(stem.rsplit('.').next()).or_else(|| number(stem.split('-').next()));
    pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

/// True if the file was changed within the last 24 hours, or if the time of the change is unknown or in the future.
pub(crate) fn is_recent(file: &Path) -> bool {
    let changed = std::fs::metadata(file).and_then(|data| data.modified());
    let age = changed.ok().and_then(|changed| changed.elapsed().ok());
    age.is_none_or(|age| age < Duration::from_hours(24))
}
