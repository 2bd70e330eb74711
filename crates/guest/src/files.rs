//! A file system that is populated in the guest: mounted empty, then filled with the files of a program's root.
//!
//! The controller has the root as an ext4 image. For any other file system it passes a list of the image's content, and
//! the file contents in the trace area, which is otherwise unused during boot.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt, chown, lchown, symlink};

use pagetide_quantity::Bytes;
use pagetide_record::FileSystem;
use serde::{Deserialize, Serialize};

use crate::error::{GuestError, io};
use crate::mount::{mount, unmount};
use crate::root::copy;
use crate::spec::MOUNT_POINT;

/// Path, in the initial file system, of the list of files to create: [`Entry`]s as JSON, folders before their content.
pub const LIST: &str = "/program.files";

/// Time stamp of all files in a root, in seconds since 1970: 2026-01-01, the start of the guest's clock.
const EPOCH_SECONDS: libc::time_t = 1_767_225_600;

/// A file, folder or symbolic link in the root of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Path of the entry below the program's root.
    pub path: String,
    /// Permission bits of the entry.
    pub mode: u32,
    /// User ID of the owner, and at the same time its group ID.
    pub owner: u32,
    /// Type of the entry.
    pub kind: Kind,
}

/// Type of an entry: folder, symbolic link or file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A directory.
    Folder,
    /// A symbolic link to this target.
    Link(String),
    /// A file with this size in bytes and these pieces, each as offset in the file and length. The content of the
    /// pieces is stored one after the other in the trace area, in whole pages. The rest of the file is zero.
    File(u64, Vec<(u64, u64)>),
}

/// The file system to create: type, device and size.
#[derive(Clone, Copy, Debug)]
pub struct FileSystemSource<'a> {
    /// Type of the file system.
    pub system: FileSystem,
    /// Path of the device with the file system; `None` for a file system in memory.
    pub device: Option<&'a str>,
    /// Size of the file system.
    pub size: Bytes,
}

impl FileSystemSource<'_> {
    /// Mounts the file system at [`MOUNT_POINT`].
    pub fn mount(&self) -> Result<(), GuestError> {
        let name = self.system.name();
        if let Some(device) = self.device {
            return mount(device, MOUNT_POINT, name, "");
        }
        let options = format!("mode=755,size={}", self.size.0);
        mount(name, MOUNT_POINT, name, &options)
    }

    /// Remounts the file system, so that nothing from creating the files stays in memory or in the journal. Does
    /// nothing for a file system without a device.
    pub fn settle(&self) -> Result<(), GuestError> {
        if self.device.is_none() {
            return Ok(());
        }
        unmount(MOUNT_POINT)?;
        self.mount()
    }
}

/// Creates all files of the root. The argument is the physical address and size of the trace area, which holds the file
/// contents.
pub fn fill((area, room): (u64, u64)) -> Result<(), GuestError> {
    let text = fs::read(LIST).map_err(io("reading", LIST))?;
    fs::remove_file(LIST).map_err(io("removing", LIST))?;
    let entries: Vec<Entry> = serde_json::from_slice(&text).map_err(|why| GuestError::Spec {
        what: "root",
        why: why.to_string(),
    })?;
    let memory = File::open("/dev/mem").map_err(io("opening the trace area in", "/dev/mem"))?;
    let mut from = 0;
    for entry in &entries {
        let path = format!("{MOUNT_POINT}{}", entry.path);
        make(entry, &path, &memory, (area, room), &mut from).map_err(io("making", &path))?;
    }
    // Only after all entries exist, because creating an entry in a folder changes the folder's times.
    for entry in entries.iter().rev() {
        let path = format!("{MOUNT_POINT}{}", entry.path);
        settle_times(&path).map_err(io("setting the times of", &path))?;
    }
    Ok(())
}

fn make(
    entry: &Entry,
    path: &str,
    memory: &File,
    (area, room): (u64, u64),
    from: &mut u64,
) -> io::Result<()> {
    let owner = Some(entry.owner);
    match &entry.kind {
        Kind::Link(target) => {
            symlink(target, path)?;
            return lchown(path, owner, owner);
        }
        Kind::Folder => match fs::create_dir(path) {
            Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(why),
            _ => {}
        },
        Kind::File(size, pieces) => {
            let file = File::create_new(path)?;
            for (at, length) in pieces {
                if *from + length > room {
                    return Err(io::Error::other("it does not fit into the trace area"));
                }
                let mut at = *at;
                copy(memory, (area + *from, *length), |piece| {
                    // The last page of a file is passed in full.
                    let left = usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX);
                    file.write_all_at(&piece[..piece.len().min(left)], at)?;
                    at += piece.len() as u64;
                    Ok(())
                })?;
                *from += length;
            }
            file.set_len(*size)?;
        }
    }
    chown(path, owner, owner)?;
    fs::set_permissions(path, fs::Permissions::from_mode(entry.mode))
}

fn settle_times(path: &str) -> io::Result<()> {
    let path = CString::new(path)?;
    let time = libc::timespec {
        tv_sec: EPOCH_SECONDS,
        tv_nsec: 0,
    };
    let times = [time, time];
    // SAFETY: path and times live through the call.
    let status = unsafe {
        libc::utimensat(
            libc::AT_FDCWD,
            path.as_ptr(),
            times.as_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
