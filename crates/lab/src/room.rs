//! Limits the space that roots and packages of users' programs take in the cache.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pagetide_quantity::Bytes;

/// Subfolders of the cache with roots and packages. Each root or set of packages has its own subfolder in them.
const FOLDERS: [&str; 2] = ["roots", "packages"];
/// A root or set of packages that was used within this time is kept, because a campaign may be about to start with it.
const KEPT_FOR: Duration = Duration::from_hours(1);

/// A root or a set of packages in the cache.
struct Piece {
    folder: PathBuf,
    size: u64,
    used: SystemTime,
}

/// Removes roots and packages, least recently used first, until the others take at most half of `limit`. Keeps those
/// that were used within [`KEPT_FOR`]. Returns the size of those that remain.
pub(crate) fn make(cache: &Path, limit: Bytes) -> Bytes {
    let mut pieces = pieces(cache);
    pieces.sort_by_key(|piece| piece.used);
    let mut total: u64 = pieces.iter().map(|piece| piece.size).sum();
    for piece in pieces {
        let is_idle = piece.used.elapsed().is_ok_and(|age| age > KEPT_FOR);
        if total > limit.0 / 2 && is_idle && fs::remove_dir_all(&piece.folder).is_ok() {
            total -= piece.size;
        }
    }
    Bytes(total)
}

/// Returns all roots and packages. Names that begin with a dot are skipped, because other processes are still making
/// these.
fn pieces(cache: &Path) -> Vec<Piece> {
    let folders = FOLDERS
        .iter()
        .flat_map(|name| fs::read_dir(cache.join(name)));
    let entries = folders.flatten().flatten();
    entries
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .filter_map(|entry| {
            let folder = entry.path();
            let files = fs::read_dir(&folder).ok()?.flatten();
            let files: Vec<fs::Metadata> = files.filter_map(|file| file.metadata().ok()).collect();
            // The use of a root changes the time of a file in it; the use of packages changes the time of the folder.
            let own = entry.metadata().ok()?;
            let times = files.iter().chain([&own]);
            Some(Piece {
                used: times
                    .filter_map(|metadata| metadata.modified().ok())
                    .max()?,
                size: files.iter().map(|metadata| metadata.blocks() * 512).sum(),
                folder,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_and_packages_that_were_not_used_for_longest_make_room_and_fresh_ones_stay() {
        let cache = tempfile::tempdir().unwrap();
        let hours = |n: u64| SystemTime::now() - Duration::from_hours(n);
        let put = |name: &str, used: SystemTime| {
            let folder = cache.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            let file = folder.join("image");
            fs::write(&file, vec![1; 1 << 20]).unwrap();
            for path in [&file, &folder] {
                fs::File::open(path).unwrap().set_modified(used).unwrap();
            }
        };
        put("roots/old", hours(9));
        put("packages/older", hours(20));
        put("roots/new", hours(0));
        put("packages/newer", hours(2));
        put("snapshots/no-business-of-ours", hours(99));
        put("roots/.making-x", hours(99));
        let left = || {
            let names = ["roots/old", "packages/older", "roots/new", "packages/newer"];
            names.map(|name| cache.path().join(name).exists())
        };
        // If all roots and packages fit, all are kept and counted.
        let taken = make(cache.path(), Bytes::from_mib(9));
        assert!((4 << 20..5 << 20).contains(&taken.0), "{taken}");
        assert_eq!(left(), [true; 4]);
        let taken = make(cache.path(), Bytes::from_mib(5));
        assert_eq!(left(), [false, false, true, true]);
        assert!((2 << 20..3 << 20).contains(&taken.0), "{taken}");
        // A root or package that may be in use is kept, even if it exceeds the limit.
        make(cache.path(), Bytes(0));
        assert_eq!(left(), [false, false, true, false]);
        assert!(cache.path().join("snapshots/no-business-of-ours").exists());
        assert!(cache.path().join("roots/.making-x").exists());
    }
}
