//! Snapshots: a guest booted and prepared once, restored for every trial.
//!
//! A snapshot is a folder named by the digest of all it depends on, holding the guest's memory (`ram`, mapped privately
//! when restored, so that trials side by side share what they do not change) and the devices' state (`state`). It is made
//! under a lock that dies with its maker, in a folder of another name, and renamed when whole; users hold a shared lock
//! on it, so that eviction never takes one that is in use.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use pagetide_guest::spec::{BOOT_SPEC, BootSpec};
use pagetide_kernel::Kernel;
use pagetide_quantity::Bytes;
use pagetide_record::subject::hex;
use rustix::fs::{FallocateFlags, FlockOperation};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::emulator::{Emulator, Wiring};
use crate::error::{ExactError, io};
use crate::initrd::Archive;
use crate::machine::{CPU, MACHINE, MachineSpec};
use crate::memory::{self, Output};
use crate::monitor::Monitor;

/// How long a guest may take to get ready, wall time.
const BOOT_LIMIT: Duration = Duration::from_mins(5);
/// Snapshots not used for this long are removed.
const AGE_LIMIT: Duration = Duration::from_hours(30 * 24);

/// All a snapshot depends on.
#[derive(Clone, Debug, Serialize)]
pub struct Recipe {
    /// Digest of the kernel's files.
    pub kernel: String,
    /// Emulator, with its version.
    pub emulator: String,
    /// Digest of the guest's program.
    pub guest: String,
    /// Arguments of the emulator.
    pub arguments: Vec<String>,
    /// What the guest is told at boot.
    pub boot: BootSpec,
}

impl Recipe {
    /// The snapshot's name.
    pub fn key(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(MACHINE);
        hash.update(CPU);
        hash.update(serde_json::to_vec(self).unwrap_or_default());
        hex(&hash.finalize()[..16])
    }
}

/// What goes into the guest's initial file system.
pub struct Contents {
    /// What runs as `/init`.
    pub program: &'static [u8],
    /// Files by name and content.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A snapshot in use; as long as this value lives, it is not evicted.
#[derive(Debug)]
pub struct Snapshot {
    /// The guest's memory.
    pub ram: PathBuf,
    /// The devices' state.
    pub state: PathBuf,
    /// The start of the kernel's image, which the emulator wants to see again.
    pub stub: PathBuf,
    _lock: File,
}

/// The folder of snapshots.
#[derive(Clone, Debug)]
pub struct Snapshots {
    root: PathBuf,
    limit: Bytes,
}

/// Opens (and makes) a lock file and locks it.
fn locked(path: &Path, how: FlockOperation) -> Result<Option<File>, ExactError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(io("opening lock", path.display().to_string()))?;
    loop {
        match rustix::fs::flock(&file, how) {
            Ok(()) => return Ok(Some(file)),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(io("locking", path.display().to_string())(errno.into())),
        }
    }
}

impl Snapshots {
    /// The snapshots below a cache folder, at most `limit` of them in bytes.
    pub fn open(cache: &Path, limit: Bytes) -> Result<Self, ExactError> {
        let root = cache.join("snapshots");
        fs::create_dir_all(&root)
            .map_err(io("making the snapshot folder", root.display().to_string()))?;
        let snapshots = Self { root, limit };
        snapshots.sweep();
        Ok(snapshots)
    }

    fn folder(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.root.join(format!("{key}.lock"))
    }

    /// Removes what killed makers left behind. A folder in the making whose lock is free has no maker any more.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.root) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(key) = name.strip_suffix(".making") else {
                continue;
            };
            if let Ok(Some(_lock)) = locked(
                &self.lock_path(key),
                FlockOperation::NonBlockingLockExclusive,
            ) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Gives the snapshot of this recipe, making it first if need be. `saying` is told what is going on.
    pub fn get(
        &self,
        recipe: &Recipe,
        kernel: &Kernel,
        machine: &MachineSpec,
        emulator: &Emulator,
        contents: impl FnOnce() -> Result<Contents, ExactError>,
        saying: &mut dyn FnMut(String),
    ) -> Result<Snapshot, ExactError> {
        let key = recipe.key();
        let lock_path = self.lock_path(&key);
        if let Some(found) = self.found(&key)? {
            return Ok(found);
        }
        {
            let _making = locked(&lock_path, FlockOperation::LockExclusive)?;
            if !self.is_whole(&key) {
                saying(format!(
                    "booting {} once ({})",
                    kernel.release, machine.memory
                ));
                self.evict();
                self.make(&key, recipe, kernel, machine, emulator, &contents()?)?;
            }
        }
        self.found(&key)?.ok_or_else(|| ExactError::Snapshot {
            path: self.folder(&key),
            why: "it vanished while it was made".to_owned(),
        })
    }

    fn is_whole(&self, key: &str) -> bool {
        self.folder(key).join("whole").exists()
    }

    fn found(&self, key: &str) -> Result<Option<Snapshot>, ExactError> {
        if !self.is_whole(key) {
            return Ok(None);
        }
        let lock = locked(&self.lock_path(key), FlockOperation::LockShared)?;
        let (true, Some(lock)) = (self.is_whole(key), lock) else {
            return Ok(None);
        };
        let folder = self.folder(key);
        // Eviction goes by the time of last use.
        let _ = File::options()
            .write(true)
            .open(folder.join("whole"))
            .and_then(|file| file.set_modified(SystemTime::now()));
        Ok(Some(Snapshot {
            ram: folder.join("ram"),
            state: folder.join("state"),
            stub: folder.join("stub"),
            _lock: lock,
        }))
    }

    fn make(
        &self,
        key: &str,
        recipe: &Recipe,
        kernel: &Kernel,
        machine: &MachineSpec,
        emulator: &Emulator,
        contents: &Contents,
    ) -> Result<(), ExactError> {
        let making = self.root.join(format!("{key}.making"));
        let _ = fs::remove_dir_all(&making);
        fs::create_dir_all(&making).map_err(io("making", making.display().to_string()))?;
        let result = boot(&making, recipe, kernel, machine, emulator, contents).and_then(|()| {
            let ram = making.join("ram");
            punch(&ram).map_err(io("thinning", ram.display().to_string()))?;
            fs::write(making.join("whole"), key)
                .map_err(io("writing", making.display().to_string()))?;
            fs::rename(&making, self.folder(key)).map_err(io("naming snapshot", key))
        });
        if result.is_err() {
            let _ = fs::remove_dir_all(&making);
        }
        result
    }

    /// Snapshots with their size on disk and time of last use, least recently used first.
    pub fn list(&self) -> Vec<(String, Bytes, SystemTime)> {
        let Ok(entries) = fs::read_dir(&self.root) else {
            return Vec::new();
        };
        let mut all: Vec<_> = entries
            .flatten()
            .filter_map(|entry| {
                let used = fs::metadata(entry.path().join("whole"))
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

    /// Removes snapshots that are too old, then those used longest ago until the rest is within the limit.
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

    /// Removes a snapshot that nobody uses; says whether it did.
    fn remove(&self, key: &str) -> bool {
        let lock_path = self.lock_path(key);
        let Ok(Some(_lock)) = locked(&lock_path, FlockOperation::NonBlockingLockExclusive) else {
            return false;
        };
        // First no longer whole, then gone: a reader never sees half of it.
        let removed = fs::remove_file(self.folder(key).join("whole")).is_ok();
        let _ = fs::remove_dir_all(self.folder(key));
        removed
    }
}

/// Disk space a folder takes.
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

/// Boots the guest to its ready point and saves it into `folder`.
fn boot(
    folder: &Path,
    recipe: &Recipe,
    kernel: &Kernel,
    machine: &MachineSpec,
    emulator: &Emulator,
    contents: &Contents,
) -> Result<(), ExactError> {
    let fault = |why: String| ExactError::Boot {
        kernel: kernel.release.clone(),
        memory: machine.memory,
        why,
    };
    let initrd = folder.join("initrd");
    write_initrd(&initrd, &recipe.boot, contents)
        .map_err(io("writing", initrd.display().to_string()))?;
    let ram = folder.join("ram");
    File::create(&ram)
        .and_then(|file| file.set_len(machine.memory.0))
        .map_err(io("writing", ram.display().to_string()))?;

    let output = Output::new(
        Bytes(recipe.boot.region_size),
        Bytes(recipe.boot.trace_size),
    )?;
    let (console, errors) = (memory::anonymous("console")?, memory::anonymous("errors")?);
    let trial = memory::holding("trial", b"{}")?;
    let wiring = Wiring::new(
        (&ram, true),
        machine.memory.0,
        output.file(),
        output.whole(),
        &console,
        &trial,
    );
    let (mut monitor, theirs) = Monitor::pair()?;
    let mut arguments = recipe.arguments.clone();
    arguments.extend(wiring.arguments);
    arguments.extend(Monitor::arguments(theirs.as_raw_fd()));
    arguments.extend(boot_files(&kernel.image(), Some(&initrd)));
    let mut inherited = wiring.inherited;
    inherited.push(theirs.as_raw_fd());
    let mut running = emulator.start(&arguments, &inherited, &errors)?;
    drop(theirs);

    let deadline = Instant::now() + BOOT_LIMIT;
    let (ignore, what) = Monitor::ignore_shared();
    let greeted = monitor
        .command("qmp_capabilities", &json!({}), deadline)
        .and_then(|_| monitor.command(ignore, &what, deadline));
    let ready = greeted.is_ok() && monitor.event(&["GUEST_PANICKED"], deadline).is_some();
    if !ready {
        running.kill();
        return Err(fault(last_words(
            &memory::text(&console),
            &memory::text(&errors),
        )));
    }
    let state = folder.join("state");
    let quoted = state.display().to_string().replace('\'', "'\\''");
    monitor
        .command(
            "migrate",
            &json!({ "uri": format!("exec:cat >'{quoted}'") }),
            deadline,
        )
        .map_err(&fault)?;
    let saved = monitor
        .migrated(deadline)
        .ok_or_else(|| fault("saving it went wrong: is the disk full?".to_owned()))?;
    emulator.proven(&saved)?;
    let _ = monitor.command("quit", &json!({}), deadline);
    let _ = running.wait();
    let stub = folder.join("stub");
    write_stub(&kernel.image(), &stub).map_err(io("writing", stub.display().to_string()))?;
    // Nothing reads it any more.
    std::fs::remove_file(&initrd).map_err(io("removing", initrd.display().to_string()))
}

/// Arguments that name kernel and initial file system.
pub fn boot_files(image: &Path, initrd: Option<&Path>) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    let mut arguments = vec!["-kernel".to_owned(), text(image)];
    if let Some(initrd) = initrd {
        arguments.extend(["-initrd".to_owned(), text(initrd)]);
    }
    arguments
}

/// Writes the start of a kernel image, all of its setup code. A restored guest has its kernel in memory; the emulator only
/// wants to see one to make the same devices, and reading 20 MB for that would take a tenth of the way to the guest.
fn write_stub(image: &Path, path: &Path) -> io::Result<()> {
    /// Up to 64 sectors of setup code, the boot sector, and something of what follows.
    /// Source: kernel `Documentation/arch/x86/boot.rst`, `setup_sects`.
    const LENGTH: u64 = 64 << 10;
    io::copy(
        &mut File::open(image)?.take(LENGTH),
        &mut File::create(path)?,
    )?;
    Ok(())
}

fn write_initrd(path: &Path, boot: &BootSpec, contents: &Contents) -> io::Result<()> {
    let mut out = io::BufWriter::new(File::create(path)?);
    let mut archive = Archive::new(&mut out);
    for folder in ["dev", "proc", "sys", "mnt", "modules"] {
        archive.folder(folder)?;
    }
    archive.file("init", true, contents.program)?;
    archive.file(
        BOOT_SPEC.trim_start_matches('/'),
        false,
        &serde_json::to_vec(boot)?,
    )?;
    for (name, bytes) in &contents.files {
        archive.file(name.trim_start_matches('/'), false, bytes)?;
    }
    archive.finish()?;
    out.flush()
}

/// What a guest that did not get ready said last: its own sentence, the kernel's panic, or the emulator's complaint.
fn last_words(console: &str, errors: &str) -> String {
    let own = console
        .lines()
        .rev()
        .find(|line| line.contains("pagetide:"));
    let panic = console
        .lines()
        .find(|line| line.contains("Kernel panic") || line.contains("System is deadlocked"));
    let complaint = errors
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty() && !line.contains("warning:"));
    let out_of_memory = console.contains("out of memory") || console.contains("Out of memory");
    let hint = if out_of_memory {
        "; raise --memory"
    } else {
        "; if it boots with more, raise --memory"
    };
    // Not what only moves the cursor.
    let legible = |line: &&str| line.chars().filter(|c| c.is_alphanumeric()).count() > 3;
    match (own, panic, complaint) {
        (Some(line), _, _) => line.split_once("pagetide:").map_or(line, |(_, rest)| rest).trim().to_owned(),
        (_, Some(line), _) => format!("{}{hint}", line.trim()),
        (_, _, Some(line)) => format!("the emulator said `{}`", line.trim()),
        _ => match console.lines().rev().find(legible) {
            Some(line) => format!("it was last heard saying `{}`{hint}", line.trim()),
            None => "nothing was heard of it; is this an x86-64 kernel? If --memory total is used, raise it".to_owned(),
        },
    }
}

/// Gives back the zero pages of a file: most of a fresh guest's memory.
fn punch(path: &Path) -> io::Result<()> {
    const CHUNK: usize = 1 << 20;
    const PAGE: usize = 4096;
    let file = File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let mut buffer = vec![0_u8; CHUNK];
    let (mut at, mut hole): (u64, Option<u64>) = (0, None);
    let dig = |from: u64, to: u64| {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, flags, from, to - from)
    };
    while at < length {
        let n = file.read_at(&mut buffer, at)?;
        if n == 0 {
            break;
        }
        for (index, page) in buffer[..n].chunks(PAGE).enumerate() {
            let from = at + (index * PAGE) as u64;
            let zero = page.iter().all(|byte| *byte == 0);
            match (zero, hole) {
                (true, None) => hole = Some(from),
                (false, Some(start)) => {
                    // A file system that cannot dig holes keeps a larger file; nothing else changes.
                    if dig(start, from).is_err() {
                        return Ok(());
                    }
                    hole = None;
                }
                _ => {}
            }
        }
        at += n as u64;
    }
    if let Some(start) = hole {
        let _ = dig(start, length);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_pages_are_given_back_and_content_stays() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ram");
        let mut content = vec![0_u8; 3 << 20];
        content[1 << 20] = 7;
        fs::write(&path, &content).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        punch(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), content);
        assert!(fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20);
    }

    #[test]
    fn last_words_prefer_the_guests_own_sentence() {
        assert_eq!(last_words("noise\npagetide: no device\n", "x"), "no device");
        assert!(
            last_words("[ 1.0] Kernel panic - not syncing: Out of memory\n", "")
                .contains("raise --memory")
        );
        assert!(last_words("", "qemu: bad option\n").contains("bad option"));
        let silent = last_words("[ 0.1] Loading\n\r\n\u{1b}[m \n", "");
        assert!(
            silent.contains("Loading") && silent.contains("raise --memory"),
            "{silent}"
        );
    }

    #[test]
    fn a_half_made_snapshot_of_a_dead_maker_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("snapshots");
        fs::create_dir_all(root.join("abc.making")).unwrap();
        fs::write(root.join("abc.making/ram"), "x").unwrap();
        let snapshots = Snapshots::open(dir.path(), Bytes(8 << 30)).unwrap();
        assert!(!root.join("abc.making").exists());
        assert!(snapshots.list().is_empty());
    }
}
