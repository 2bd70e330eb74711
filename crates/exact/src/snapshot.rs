//! Snapshots: a guest is booted and prepared once, and restored for every trial.
//!
//! A snapshot is a folder named by the digest of everything it depends on. It holds the guest's memory (`ram`, and a
//! file for each further node) and the devices' state (`state`). Memory is mapped privately when it is restored, so
//! parallel trials share unchanged pages. A snapshot is made in a folder of another name, under a lock that is released
//! if the making process dies, and renamed when complete. Users of a snapshot hold a shared lock on it, so eviction
//! never removes a snapshot in use. Every user first checks the snapshot against its [`Seal`]; a damaged snapshot is
//! deleted and made again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use pagetide_quantity::Bytes;
use rustix::fs::FlockOperation;

use crate::boot::Boot;
use crate::clock::SavedClock;
use crate::error::{ExactError, io};
use crate::lock::{locked, try_lock};
use crate::machine::BOOT_SHIFT;
use crate::nodes::{memory_name, memory_paths};
use crate::recipe::{Contents, Recipe};
use crate::seal::{Identity, Seal};

/// Names of a snapshot's files, other than the seal and the memory of each node.
const FILES: [&str; 2] = ["state", "stub"];
/// Name of the file with the seal, which is written last.
const SEAL: &str = "whole";
/// Maximum number of boots for one snapshot, if the emulator moved the guest's clock.
const BOOTS: u32 = 3;
/// Interval at which this process tries again to take a lock held by another process.
const PAUSE: Duration = Duration::from_millis(50);
/// Time since its last use after which a snapshot is removed.
const AGE_LIMIT: Duration = Duration::from_hours(30 * 24);

/// A snapshot in use; it is not evicted while this value exists.
#[derive(Debug)]
pub struct Snapshot {
    /// Paths of the files with the guest's memory, one for each node.
    pub rams: Vec<PathBuf>,
    /// Path of the file with the devices' state.
    pub state: PathBuf,
    /// Path of the file with the beginning of the kernel's image, which the emulator needs for restoring.
    pub stub: PathBuf,
    _lock: File,
}

impl Snapshot {
    /// Returns the path of the snapshot's folder.
    pub fn folder(&self) -> PathBuf {
        self.state.parent().unwrap_or(&self.state).to_owned()
    }
}

/// State of a snapshot in the cache.
#[derive(Debug)]
enum SnapshotState {
    Whole(Snapshot),
    Damaged(String),
    /// Another process is making or removing the snapshot.
    Busy,
}

/// Attributes of each file of a snapshot at the time of its verification.
type Proof = Vec<Identity>;

/// Returns the names of all files of a snapshot with this number of nodes, apart from the seal.
fn files(nodes: usize) -> Vec<String> {
    let own = FILES.map(str::to_owned);
    (0..nodes).map(memory_name).chain(own).collect()
}

/// The folder with all snapshots of a cache.
#[derive(Clone, Debug)]
pub struct Snapshots {
    root: PathBuf,
    limit: Bytes,
    /// Attributes of the files of those snapshots that this process has verified, by name of the snapshot.
    proven: Arc<Mutex<BTreeMap<String, Proof>>>,
}

impl Snapshots {
    /// Opens the snapshots in a cache folder. Eviction keeps their total size within `limit`.
    pub fn open(cache: &Path, limit: Bytes) -> Result<Self, ExactError> {
        let root = cache.join("snapshots");
        fs::create_dir_all(&root)
            .map_err(io("making the snapshot folder", root.display().to_string()))?;
        let snapshots = Self {
            root,
            limit,
            proven: Arc::default(),
        };
        snapshots.sweep();
        Ok(snapshots)
    }

    fn folder(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// Returns true if a snapshot of this name exists. It may be damaged, which is detected only on use.
    pub fn has(&self, key: &str) -> bool {
        self.folder(key).join(SEAL).exists()
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.root.join(format!("{key}.lock"))
    }

    /// Removes the leftovers of processes that were killed while they created a snapshot. Such a folder is incomplete,
    /// and its lock is free.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.root) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(key) = name.strip_suffix(".making") else {
                continue;
            };
            if let Ok(Some(_lock)) = try_lock(
                &self.lock_path(key),
                FlockOperation::NonBlockingLockExclusive,
            ) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Returns the snapshot for this recipe. Boots the guest if there is none or it is damaged. `say` receives messages
    /// on long steps.
    pub fn get(
        &self,
        boot: &Boot<'_>,
        contents: &dyn Fn() -> Result<Contents, ExactError>,
        say: &mut dyn FnMut(String),
    ) -> Result<Snapshot, ExactError> {
        let key = boot.recipe.key();
        let (release, memory) = (&boot.kernel.release, boot.machine.memory);
        let nodes = boot.machine.memories().len();
        let mut made = false;
        let mut damaged: Option<(Identity, String)> = None;
        loop {
            let seal = Identity::of(&self.folder(&key).join(SEAL)).ok();
            // A snapshot found to be damaged is not read again until it has been replaced.
            if let Some(seal) = seal
                && damaged.as_ref().is_none_or(|(bad, _)| *bad != seal)
            {
                match self.found(&key, nodes)? {
                    SnapshotState::Whole(snapshot) => return Ok(snapshot),
                    SnapshotState::Damaged(why) => damaged = Some((seal, why)),
                    SnapshotState::Busy => {}
                }
            } else if let Some(_making) =
                self.lock(&key, FlockOperation::NonBlockingLockExclusive)?
                && Identity::of(&self.folder(&key).join(SEAL)).ok() == seal
            {
                if std::mem::replace(&mut made, true) {
                    return Err(ExactError::Vanished {
                        path: self.folder(&key),
                    });
                }
                say(match damaged.take() {
                    Some((_, why)) => format!(
                        "the snapshot of {release} ({memory}) is damaged ({why}): booting it again"
                    ),
                    None => format!("booting {release} once ({memory})"),
                });
                self.throw_away(&key);
                self.evict();
                self.make(&key, boot, &contents()?, say)?;
                continue;
            }
            // Another process makes the snapshot, or still runs the damaged one.
            if boot.progress.is_stopped() {
                return Err(ExactError::Stopped);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn lock(&self, key: &str, how: FlockOperation) -> Result<Option<File>, ExactError> {
        try_lock(&self.lock_path(key), how)
    }

    /// Verifies a snapshot's files, unless this process has verified the same files before. The error names the file
    /// that differs, or says that the seal cannot be read.
    fn prove(&self, key: &str, nodes: usize) -> Result<(), String> {
        let folder = self.folder(key);
        // The lock is held while files are read, so that parallel trials do not all read them.
        let mut proven = locked(&self.proven);
        let mut now: Proof = Vec::new();
        let files = files(nodes);
        for name in &files {
            let identity = Identity::of(&folder.join(name));
            now.push(identity.map_err(|why| format!("{name}: {why}"))?);
        }
        if proven.get(key) != Some(&now) {
            proven.remove(key);
            Seal::check(&folder.join(SEAL), key, &files)?;
            proven.insert(key.to_owned(), now);
        }
        Ok(())
    }

    fn found(&self, key: &str, nodes: usize) -> Result<SnapshotState, ExactError> {
        let Some(lock) = self.lock(key, FlockOperation::NonBlockingLockShared)? else {
            return Ok(SnapshotState::Busy);
        };
        if !self.folder(key).join(SEAL).exists() {
            return Ok(SnapshotState::Busy);
        }
        if let Err(why) = self.prove(key, nodes) {
            return Ok(SnapshotState::Damaged(why));
        }
        let folder = self.folder(key);
        // Eviction uses the modification time as the time of last use.
        let _ = File::options()
            .write(true)
            .open(folder.join(SEAL))
            .and_then(|file| file.set_modified(SystemTime::now()));
        Ok(SnapshotState::Whole(Snapshot {
            rams: memory_paths(&folder, nodes),
            state: folder.join("state"),
            stub: folder.join("stub"),
            _lock: lock,
        }))
    }

    fn make(
        &self,
        key: &str,
        boot: &Boot<'_>,
        contents: &Contents,
        say: &mut dyn FnMut(String),
    ) -> Result<(), ExactError> {
        let making = self.root.join(format!("{key}.making"));
        let again = || {
            let _ = fs::remove_dir_all(&making);
            fs::create_dir_all(&making).map_err(io("making", making.display().to_string()))
        };
        let result = (1..=BOOTS).try_fold(false, |is_kept, boots| {
            if is_kept {
                return Ok(true);
            }
            again()?;
            boot.save(&making, contents)?;
            if boot.machine.timing.is_real() {
                return Ok(true);
            }
            let is_moved = scale_clock(&making.join("state"), &boot.emulator.version)?;
            if !is_moved {
                return Ok(true);
            }
            let release = &boot.kernel.release;
            // The snapshot of the last boot is accepted even if its clock was moved: a kernel that waits while it boots
            // moves its clock legitimately.
            say(if boots == BOOTS {
                format!("the clock of {release} was moved in each of {BOOTS} boots: trials repeat exactly, but may differ from those of another snapshot")
            } else {
                format!("the clock of {release} was moved while it stopped: booting it once more")
            });
            Ok(boots == BOOTS)
        });
        let result = result.and_then(|_| {
            Seal::of(key, &making, &files(boot.machine.memories().len()))
                .and_then(|seal| seal.write(&making.join(SEAL)))
                .map_err(io("sealing", making.display().to_string()))?;
            fs::rename(&making, self.folder(key)).map_err(io("naming snapshot", key))
        });
        if result.is_err() {
            let _ = fs::remove_dir_all(&making);
        }
        result
    }

    /// Removes a snapshot that cannot be restored, so that it is created again. Does nothing if another process uses
    /// it.
    pub fn discard(&self, recipe: &Recipe) {
        self.remove(&recipe.key());
    }

    /// Removes a snapshot's files. The caller must hold its lock. Returns true if the seal was removed.
    fn throw_away(&self, key: &str) -> bool {
        // The seal is removed first, so that no reader accepts an incomplete snapshot.
        let removed = fs::remove_file(self.folder(key).join(SEAL)).is_ok();
        let _ = fs::remove_dir_all(self.folder(key));
        removed
    }

    /// Returns name, size on disk and time of last use of every snapshot, least recently used first.
    pub fn list(&self) -> Vec<(String, Bytes, SystemTime)> {
        let Ok(entries) = fs::read_dir(&self.root) else {
            return Vec::new();
        };
        let mut all: Vec<_> = entries
            .flatten()
            .filter_map(|entry| {
                let used = fs::metadata(entry.path().join(SEAL))
                    .and_then(|m| m.modified())
                    .ok()?;
                Some((
                    entry.file_name().to_string_lossy().into_owned(),
                    on_disk(&entry.path()),
                    used,
                ))
            })
            .collect();
        all.sort_by_key(|(_, _, used)| *used);
        all
    }

    /// Removes snapshots that were not used for [`AGE_LIMIT`]. Then removes the least recently used ones until the rest
    /// is within the size limit. Snapshots in use are kept.
    pub fn evict(&self) {
        let all = self.list();
        let mut total: u64 = all.iter().map(|(_, size, _)| size.0).sum();
        for (key, size, used) in all {
            let old = used.elapsed().is_ok_and(|age| age > AGE_LIMIT);
            if (old || total > self.limit.0) && self.remove(&key) {
                total -= size.0;
            }
        }
    }

    /// Removes a snapshot unless a process uses it. Returns true if it was removed.
    fn remove(&self, key: &str) -> bool {
        let lock_path = self.lock_path(key);
        let Ok(Some(_lock)) = try_lock(&lock_path, FlockOperation::NonBlockingLockExclusive) else {
            return false;
        };
        self.throw_away(key)
    }
}

/// Changes the clock in the saved state at `path` to the rate of trials. Returns true if the emulator may have moved
/// the guest's clock at the stop.
fn scale_clock(path: &Path, emulator: &str) -> Result<bool, ExactError> {
    let name = || path.display().to_string();
    let mut state = fs::read(path).map_err(io("reading", name()))?;
    let clock = SavedClock::of(&state).ok_or_else(|| ExactError::NoClock {
        emulator: emulator.to_owned(),
    })?;
    clock.scale_clock(&mut state, BOOT_SHIFT);
    fs::write(path, state).map_err(io("writing", name()))?;
    Ok(clock.is_moved())
}

/// Returns the disk space that a folder's files take.
fn on_disk(folder: &Path) -> Bytes {
    use std::os::unix::fs::MetadataExt;
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    Bytes(
        files
            .filter_map(|entry| entry.metadata().ok())
            .map(|m| m.blocks() * 512)
            .sum(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Bytes = Bytes(8 << 30);

    /// Creates a cache folder with one complete snapshot.
    fn one() -> (tempfile::TempDir, Snapshots) {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::open(dir.path(), LIMIT).unwrap();
        let folder = snapshots.folder("key");
        fs::create_dir(&folder).unwrap();
        for name in files(1) {
            fs::write(folder.join(&name), name.repeat(5000)).unwrap();
        }
        let seal = Seal::of("key", &folder, &files(1)).unwrap();
        seal.write(&folder.join(SEAL)).unwrap();
        (dir, snapshots)
    }

    #[test]
    fn a_guest_saved_without_a_count_of_instructions_is_refused_and_one_with_it_said_to_be_moved_or_not()
     {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let saved = |bias: i64| {
            let mut state = b"timer/icount\0\0\0\x01".to_vec();
            state.extend(bias.to_be_bytes());
            state.extend(1000_i64.to_be_bytes());
            fs::write(&path, state).unwrap();
            scale_clock(&path, "QEMU 7.2")
        };
        assert!(!saved(0).unwrap());
        assert_eq!(fs::read(&path).unwrap()[16..24], 7000_i64.to_be_bytes());
        assert!(saved(990_593).unwrap());
        fs::write(&path, "nothing of the kind").unwrap();
        let why = scale_clock(&path, "QEMU 99.1").unwrap_err().to_string();
        assert!(why.starts_with("QEMU 99.1 saved a guest without"), "{why}");
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            scale_clock(&path, ""),
            Err(ExactError::Io {
                what: "reading",
                ..
            })
        ));
    }

    #[test]
    fn a_half_made_snapshot_of_a_dead_maker_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("snapshots");
        fs::create_dir_all(root.join("abc.making")).unwrap();
        fs::write(root.join("abc.making/ram"), "x").unwrap();
        let snapshots = Snapshots::open(dir.path(), LIMIT).unwrap();
        assert!(!root.join("abc.making").exists());
        assert!(snapshots.list().is_empty());
    }

    #[test]
    fn a_snapshot_is_proven_before_its_first_use_and_again_when_a_file_changed() {
        let (_dir, snapshots) = one();
        for _ in 0..2 {
            assert!(matches!(
                snapshots.found("key", 1).unwrap(),
                SnapshotState::Whole(_)
            ));
        }
        for name in files(1) {
            let path = snapshots.folder("key").join(&name);
            let good = fs::read(&path).unwrap();
            let mut bad = good.clone();
            bad[777] ^= 8;
            fs::write(&path, &bad).unwrap();
            match snapshots.found("key", 1).unwrap() {
                SnapshotState::Damaged(why) => assert!(why.starts_with(&name), "{why}"),
                other => panic!("{name}: {other:?}"),
            }
            fs::write(&path, &good).unwrap();
            assert!(matches!(
                snapshots.found("key", 1).unwrap(),
                SnapshotState::Whole(_)
            ));
        }
    }

    #[test]
    fn a_snapshot_that_is_being_made_is_not_called_damaged() {
        let (_dir, snapshots) = one();
        let made = snapshots
            .lock("key", FlockOperation::NonBlockingLockExclusive)
            .unwrap();
        assert!(made.is_some());
        assert!(matches!(
            snapshots.found("key", 1).unwrap(),
            SnapshotState::Busy
        ));
        drop(made);
        assert!(matches!(
            snapshots.found("key", 1).unwrap(),
            SnapshotState::Whole(_)
        ));
        assert!(matches!(
            snapshots.found("other", 1).unwrap(),
            SnapshotState::Busy
        ));
    }
}
