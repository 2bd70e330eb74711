//! A file system that is made here: mounted empty, and filled with the files of a program's root.
//!
//! The controller has the root as an ext4 image. For any other file system it hands over a list of what the image holds, and the
//! bytes of its files in the trace area, which a boot does not use otherwise.

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

/// Where the list lies in the initial file system: [`Entry`]s as JSON, folders before what they hold.
pub const LIST: &str = "/program.files";

/// Every time in a root: 2026-01-01, when the guest's clock begins.
const EPOCH_SECONDS: libc::time_t = 1_767_225_600;

/// One name of a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Path inside.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// User and group that it belongs to.
    pub owner: u32,
    /// What it is.
    pub kind: Kind,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A folder.
    Folder,
    /// A symbolic link, and where it leads.
    Link(String),
    /// A file of this size. Its pieces follow in the trace area, one after the other: offset in the file and length, in whole
    /// pages. What lies between them is zero.
    File(u64, Vec<(u64, u64)>),
}

/// Where a file system goes.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Which it is.
    pub system: FileSystem,
    /// Its device, if it has one.
    pub device: Option<&'a str>,
    /// Its size.
    pub size: Bytes,
}

impl Place<'_> {
    /// Mounts it.
    pub fn mount(&self) -> Result<(), GuestError> {
        let name = self.system.name();
        if let Some(device) = self.device {
            return mount(device, MOUNT_POINT, name, "");
        }
        let options = format!("mode=755,size={}", self.size.0);
        mount(name, MOUNT_POINT, name, &options)
    }

    /// Writes everything to the device and mounts it again, so that nothing of its making is left in memory or in its log.
    pub fn settle(&self) -> Result<(), GuestError> {
        if self.device.is_none() {
            return Ok(());
        }
        unmount(MOUNT_POINT)?;
        self.mount()
    }
}

/// Makes all files of the root; `area` is where the trace area lies in memory, and its size.
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
    // From the deepest up: making something in a folder changes its times.
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
                    // The last page of a file is handed over whole.
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
