//! Limits the space that sources, builds and built kernels occupy in the cache, by removing the least recently used
//! ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pagetide_kernel::{Cache, Kernel, Lock};
use pagetide_outside::{FileOrigin, read_text, replace};

use crate::tree::MAX_NOTE_BYTES;

/// A source or a build folder that may be removed.
#[derive(Debug)]
struct Piece {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Text with which the stored origin (`kernel.origin.reference`) of a built kernel begins.
pub const BUILT_FROM: &str = "built from ";

/// Number of newest built kernels that are never removed.
const KERNELS: usize = 100;

/// Returns the number of bytes that sources, builds, ccache and built kernels occupy in the cache.
pub fn taken(cache: &Cache) -> u64 {
    sum(cache, &pieces(cache), &built(cache))
}

fn sum(cache: &Cache, pieces: &[Piece], kernels: &[Kernel]) -> u64 {
    let sources: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    let kernels: u64 = kernels.iter().filter_map(|kernel| kernel.size().ok()).sum();
    sources + walked(&cache.root().join("ccache")) + kernels
}

/// Returns all built kernels, oldest first.
fn built(cache: &Cache) -> Vec<Kernel> {
    let mut kernels = cache.list().unwrap_or_default();
    kernels.retain(|kernel| kernel.origin.reference.starts_with(BUILT_FROM));
    kernels.sort_by_key(|kernel| kernel.added);
    kernels
}

/// Removes sources and builds, least recently used first, until the rest occupies at most `limit` bytes. Also removes
/// old built kernels if needed. Folders in use and folders in `kept` are not removed.
pub fn make(cache: &Cache, limit: u64, kept: &[&Path]) {
    let mut pieces = pieces(cache);
    pieces.sort_by_key(|piece| piece.used);
    let kernels = built(cache);
    let mut total = sum(cache, &pieces, &kernels);
    // Kernels are small, and the newest are needed for comparisons. So only kernels beyond the newest [`KERNELS`] are
    // removed.
    let beyond = kernels.len().saturating_sub(KERNELS);
    for kernel in kernels.iter().take(if total > limit { beyond } else { 0 }) {
        let bytes = kernel.size().unwrap_or_default();
        if cache.remove(&kernel.digest).is_ok() {
            total = total.saturating_sub(bytes);
        }
    }
    for piece in pieces {
        if total <= limit {
            return;
        }
        if kept.contains(&piece.path.as_path()) {
            continue;
        }
        // If a process works in the folder, it holds the folder's lock.
        if let Ok(Some(_lock)) = Lock::try_existing(&piece.path)
            && fs::remove_dir_all(&piece.path).is_ok()
        {
            total = total.saturating_sub(piece.bytes);
        }
    }
}

fn pieces(cache: &Cache) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for kind in ["sources", "builds"] {
        let Ok(entries) = fs::read_dir(cache.root().join(kind)) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if !path.is_dir() {
                continue;
            }
            let used = fs::metadata(path.join("used"))
                .or_else(|_| fs::metadata(&path))
                .and_then(|data| data.modified())
                .unwrap_or(SystemTime::UNIX_EPOCH);
            pieces.push(Piece {
                bytes: size(&path),
                path,
                used,
            });
        }
    }
    pieces
}

/// Returns the size of a folder in bytes; unreadable files count as zero. The size is stored in the folder, because
/// patches hardly change it.
fn size(folder: &Path) -> u64 {
    let known = folder.join("size");
    if let Some(bytes) = read_text(&known, FileOrigin::Own, MAX_NOTE_BYTES)
        .ok()
        .and_then(|text| text.trim().parse().ok())
    {
        return bytes;
    }
    let bytes = walked(folder);
    let _ = replace(&known, bytes.to_string().as_bytes());
    bytes
}

/// Returns the size of a folder in bytes, by adding up the sizes of its files.
fn walked(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    bytes += entry.metadata().map_or(0, |data| data.len());
                }
                _ => {}
            }
        }
    }
    bytes
}

/// Deletes the stored size of a folder. Must be called after a write to the folder.
pub fn changed(folder: &Path) {
    let _ = fs::remove_file(folder.join("size"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_used_longest_ago_makes_way_and_what_is_in_use_or_needed_stays() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        let make_one = |name: &str, age: u64| {
            let folder = root.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("file"), vec![0; 1000]).unwrap();
            let used = fs::File::create(folder.join("used")).unwrap();
            used.set_modified(SystemTime::now() - Duration::from_secs(age))
                .unwrap();
            folder
        };
        let held = make_one("sources/held", 400);
        let old = make_one("builds/old", 300);
        let needed = make_one("sources/needed", 200);
        let young = make_one("builds/young", 100);
        let _lock = Lock::try_existing(&held).unwrap().unwrap();
        assert_eq!(taken(&cache), 4000);
        make(&cache, 3000, &[&needed]);
        assert!(held.exists() && needed.exists() && young.exists() && !old.exists());
        make(&cache, 0, &[&needed]);
        assert!(held.exists() && needed.exists() && !young.exists());
    }
}
