//! The image of a root: an ext4 file system whose bytes depend only on its content and the version of `mke2fs`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pagetide_quantity::{Bytes, PAGE_SIZE};
use pagetide_system::child::{self, Failure, Limits};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};
use sha2::{Digest, Sha256};

use crate::error::{RootError, io};
use crate::inodes::{self, EPOCH_SECONDS};
use crate::path::RootPath;
use crate::tree::{Entry, Source, Tree, hex};
use crate::{USER, WORK};

/// Maximum size of all files of a root together: the limit for a guest, less what the file system itself needs.
pub const MAX_SIZE: Bytes = Bytes::from_mib(896);
/// Number of inodes reserved for files that the program creates.
const SPARE_INODES: u64 = 4096;
/// Size of an inode in bytes.
const INODE_BYTES: u64 = 256;

fn fault(why: impl Into<String>) -> RootError {
    RootError::Image { why: why.into() }
}

/// Time limit for making an image, far longer than the largest image takes on a slow disk.
const PATIENCE: Duration = Duration::from_hours(1);
/// Maximum number of bytes read from the output of `mke2fs`.
const MAX_OUTPUT: usize = 64 << 10;

fn mke2fs() -> Command {
    let mut command = child::command("mke2fs");
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("MKE2FS_CONFIG", "/dev/null")
        .env("SOURCE_DATE_EPOCH", EPOCH_SECONDS.to_string())
        .env("E2FSPROGS_FAKE_TIME", EPOCH_SECONDS.to_string());
    command
}

fn not_run(why: Failure) -> RootError {
    match why {
        Failure::Stopped => RootError::Stopped,
        why => fault(format!("mke2fs {why}")),
    }
}

/// Returns the version of `mke2fs` on this machine. Other versions may lay out the same files differently. Fails if it
/// cannot be run.
pub(crate) fn version() -> Result<String, RootError> {
    let output = child::run(mke2fs().arg("-V"), &Limits::QUICK).map_err(not_run)?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = text.lines().next().unwrap_or_default().trim().to_owned();
    if first.starts_with("mke2fs ") {
        Ok(first)
    } else {
        Err(fault(format!("mke2fs calls itself `{first}`")))
    }
}

/// Returns the size of the image of a tree, with `space` bytes free for the program, and the image's number of inodes.
pub(crate) fn size(tree: &Tree, space: Bytes) -> (Bytes, u64) {
    let (mut pages, mut names) = (0, 0);
    for (_, entry) in tree.entries() {
        names += 1;
        pages += match entry {
            Entry::File { size, .. } => size.0.div_ceil(PAGE_SIZE),
            Entry::Folder { .. } | Entry::Link { .. } => 1,
        };
    }
    let inodes = names + SPARE_INODES;
    let content = pages * PAGE_SIZE;
    // Space that the file system needs for extent trees, large folders, and its own tables.
    let own = content / 64 + inodes * INODE_BYTES + (4 << 20);
    let whole = (content + own + space.0).next_multiple_of(1 << 20);
    (Bytes(whole), inodes)
}

/// Makes the image of a tree as a file. `folder` is an empty folder for temporary files, on the same file system as the
/// image. Fails if the tree is too large, or when `stop` returns true.
pub(crate) fn make(
    tree: &Tree,
    space: Bytes,
    folder: &Path,
    image: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<(), RootError> {
    let used = tree.size();
    if used > MAX_SIZE {
        return Err(RootError::TooLarge {
            size: used,
            most: MAX_SIZE,
        });
    }
    let stage = folder.join("stage");
    fs::create_dir(&stage).map_err(io("making", &stage))?;
    lay_out(tree, &stage, stop)?;
    let (size, inodes) = size(tree, space);
    let mut command = mke2fs();
    command
        .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-I"])
        .arg(INODE_BYTES.to_string())
        .args(["-U", "70616765-7469-6465-2d70-726f6772616d", "-N"])
        .arg(inodes.to_string())
        .args(["-O", "^has_journal,^metadata_csum,^resize_inode,^64bit,extent,dir_index,filetype"])
        .args(["-E", "hash_seed=70616765-7469-6465-2d70-726f67726101,lazy_itable_init=1,nodiscard,root_owner=0:0", "-d"])
        .arg(&stage)
        .arg(image)
        .arg(format!("{}k", size.0 >> 10));
    let limits = Limits {
        time: PATIENCE,
        output: MAX_OUTPUT,
        stop,
    };
    let made = child::run(&mut command, &limits).map_err(not_run)?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        let last = said.trim().lines().last().unwrap_or_default();
        return Err(fault(format!("mke2fs said `{last}`")));
    }
    let file = File::options()
        .read(true)
        .write(true)
        .open(image)
        .map_err(io("opening", image))?;
    inodes::settle(&file, |time| if time == EPOCH_SECONDS { 0 } else { USER })
        .map_err(io("setting owners and times in", image))?;
    remove(&stage)
}

/// Copies a tree to the folder `stage` of this machine. Writes only to files just created, and follows no links. Fails
/// when `stop` returns true, or if a file has changed since it was added.
fn lay_out(tree: &Tree, stage: &Path, stop: &dyn Fn() -> bool) -> Result<(), RootError> {
    let mut times = Vec::new();
    for (inside, entry) in tree.entries() {
        if stop() {
            return Err(RootError::Stopped);
        }
        let path = stage.join(inside.as_str().trim_start_matches('/'));
        match entry {
            Entry::Folder { .. } => fs::DirBuilder::new()
                .mode(0o755)
                .create(&path)
                .map_err(io("making", &path))?,
            Entry::Link { target } => {
                std::os::unix::fs::symlink(target, &path).map_err(io("making", &path))?;
            }
            Entry::File {
                source,
                executable,
                digest,
                ..
            } => {
                copy(source, &path, digest)?;
                let mode = if *executable { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))
                    .map_err(io("making", &path))?;
            }
        }
        times.push((path, inside, entry));
    }
    // The deepest paths come first, because creating a file in a folder changes the folder's times.
    for (path, inside, entry) in times.into_iter().rev() {
        if let Entry::Folder { shared } = entry {
            let mode = if *shared { 0o1777 } else { 0o755 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))
                .map_err(io("making", &path))?;
        }
        mark(&path, inside)?;
    }
    mark(stage, &RootPath::new("/", "")?)
}

/// Encodes the future owner of a file in its modification time, which is in the image then. The owner is later set from
/// that time.
fn mark(path: &Path, inside: &RootPath) -> Result<(), RootError> {
    let time = Timespec {
        tv_sec: i64::from(EPOCH_SECONDS) + i64::from(inside.is_below(WORK)),
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| io("setting the time of", path)(errno.into()))
}

/// Copies a file to `path` and checks the copied bytes against the digest. Fails if they differ.
fn copy(source: &Source, path: &Path, digest: &str) -> Result<(), RootError> {
    let mut to = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(io("making", path))?;
    let host = match source {
        Source::Bytes(bytes) => {
            return to.write_all(bytes).map_err(io("writing", path));
        }
        Source::Host(host) => host,
    };
    let mut from = File::open(host).map_err(io("reading", host))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        let n = from.read(&mut buffer).map_err(io("reading", host))?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
        to.write_all(&buffer[..n]).map_err(io("writing", path))?;
    }
    if hex(&hash.finalize()) == digest {
        Ok(())
    } else {
        Err(RootError::Changed {
            path: PathBuf::from(host),
        })
    }
}

/// Removes the copied tree from the folder `stage`.
fn remove(stage: &Path) -> Result<(), RootError> {
    fs::remove_dir_all(stage).map_err(io("removing", stage))
}
