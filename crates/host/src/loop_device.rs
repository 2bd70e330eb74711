//! Connects free loop devices to unnamed files, whose space is freed when the devices are disconnected.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use pagetide_quantity::Bytes;

use crate::change::Change;
use crate::error::HostError;
use crate::journal::{Entry, Journal};
use crate::loop_control::{LoopDevice, configure, sysfs};

/// Maximum number of loop devices that are tried.
const MAX_DEVICES: u32 = 256;
/// Minimum free space to leave on the disk.
const ROOM: Bytes = Bytes(256 << 20);

/// Connects a free loop device to a new unnamed file of this size in `folder`. The file's space is allocated. Fails if
/// the disk has too little free space, or if no loop device is free.
pub fn connect(
    journal: &Journal,
    folder: &Path,
    size: Bytes,
) -> Result<(LoopDevice, Entry), HostError> {
    let none = |why: String, remedy: &str| HostError::NoSwap {
        on: "a loop device",
        size,
        why,
        remedy: remedy.to_owned(),
    };
    let file = unnamed(folder, size)
        .map_err(|(why, remedy)| none(format!("{}: {why}", folder.display()), remedy))?;
    let about = file
        .metadata()
        .map_err(|why| none(why.to_string(), "choose another folder"))?;
    let control = File::options()
        .read(true)
        .write(true)
        .open("/dev/loop-control");
    let control = control.map_err(|why| {
        none(
            format!("/dev/loop-control: {why}"),
            "run it as root on a kernel with loop devices (`modprobe loop`)",
        )
    })?;
    for number in 0..MAX_DEVICES {
        if sysfs(number).join("loop/backing_file").exists() {
            continue;
        }
        let change = Change::Loop {
            number,
            device: about.dev(),
            inode: about.ino(),
            added: !sysfs(number).exists(),
        };
        let entry = journal.record(change)?;
        match configure(&control, number, &file) {
            Ok(device) => return Ok((device, entry)),
            // Another process took the device.
            Err(why) if why.raw_os_error() == Some(libc::EBUSY) => journal.withdraw(entry)?,
            Err(why) => {
                journal.undo(&[entry]);
                return Err(none(format!("/dev/loop{number}: {why}"), "use zram"));
            }
        }
    }
    Err(none(
        format!("all {MAX_DEVICES} loop devices are in use"),
        "detach some with `losetup -d`",
    ))
}

/// Creates an unnamed file and allocates its space. The error comes with a remedy.
fn unnamed(folder: &Path, size: Bytes) -> Result<File, (io::Error, &'static str)> {
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .mode(0o600)
        .open(folder)
        .map_err(|why| (why, "choose a folder on ext4, xfs or btrfs"))?;
    // Checked first, because filling the disk would harm others even if the space is given back at once.
    let room = rustix::fs::fstatvfs(&file).map_or(u64::MAX, |v| v.f_bavail * v.f_frsize);
    if room < size.0.saturating_add(ROOM.0) {
        let why = format!(
            "only {} are free, and {ROOM} of them stay free",
            Bytes(room)
        );
        return Err((
            io::Error::new(io::ErrorKind::StorageFull, why),
            "free some space there, or use less swap",
        ));
    }
    let length = libc::off_t::try_from(size.0).unwrap_or(libc::off_t::MAX);
    // SAFETY: the descriptor is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(file),
        code => Err((
            io::Error::from_raw_os_error(code),
            "free some space there, or use less swap",
        )),
    }
}
