//! Loop devices: block devices whose content is a file. The file has no name, so it disappears with the device.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;

use crate::change::Change;
use crate::error::HostError;
use crate::journal::{Entry, Journal};

// Source: kernel include/uapi/linux/loop.h.
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const LOOP_CTL_ADD: libc::c_ulong = 0x4C80;
const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Most loop devices that are tried.
const MOST: u32 = 256;
/// Space that stays free on the disk.
const ROOM: Bytes = Bytes(256 << 20);
/// Size of a block of the device: direct I/O needs at least that of the disk.
const BLOCK: u32 = 4096;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl LoopInfo {
    fn empty() -> Self {
        // SAFETY: all fields are numbers, for which zero is valid.
        unsafe { std::mem::zeroed() }
    }
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// A connected loop device. It is disconnected when its last user closes it; swap on it is such a user.
#[derive(Debug)]
pub struct LoopDevice {
    /// Path of the device.
    pub path: PathBuf,
    /// Number of the device.
    pub number: u32,
    /// True if its reads and writes bypass the page cache of the file below.
    pub is_direct: bool,
    /// Keeps the device connected.
    _open: OwnedFd,
}

/// Folder of a loop device in sysfs.
fn sysfs(number: u32) -> PathBuf {
    PathBuf::from(format!("/sys/block/loop{number}"))
}

/// Connects a free loop device to a new file of this size without a name in `folder`. The space of the file is
/// allocated.
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
    for number in 0..MOST {
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
            // Somebody else took it.
            Err(why) if why.raw_os_error() == Some(libc::EBUSY) => journal.withdraw(entry)?,
            Err(why) => {
                journal.undo(&[entry]);
                return Err(none(format!("/dev/loop{number}: {why}"), "use zram"));
            }
        }
    }
    Err(none(
        format!("all {MOST} loop devices are in use"),
        "detach some with `losetup -d`",
    ))
}

/// Creates a file without a name, and allocates its space. The error has a remedy.
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

fn configure(control: &File, number: u32, file: &File) -> io::Result<LoopDevice> {
    let path = PathBuf::from(format!("/dev/loop{number}"));
    if !sysfs(number).exists() {
        // SAFETY: the descriptor is open; the argument is a number.
        if unsafe {
            libc::ioctl(
                control.as_raw_fd(),
                LOOP_CTL_ADD,
                libc::c_ulong::from(number),
            )
        } < 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    let device = File::options().read(true).write(true).open(&path)?;
    let config = LoopConfig {
        fd: file.as_raw_fd().cast_unsigned(),
        block_size: BLOCK,
        info: LoopInfo {
            flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
            ..LoopInfo::empty()
        },
        reserved: [0; 8],
    };
    // SAFETY: the structure has the layout of the kernel and lives through the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let direct = fs::read_to_string(sysfs(number).join("loop/dio")).unwrap_or_default();
    Ok(LoopDevice {
        path,
        number,
        is_direct: direct.trim() == "1",
        _open: device.into(),
    })
}

/// Disconnects a loop device if it is still connected to the file with this device and inode. If `added` is true, removes
/// the loop device too.
pub(crate) fn release(number: u32, file: (u64, u64), added: bool) -> io::Result<()> {
    let path = format!("/dev/loop{number}");
    if let Ok(device) = File::open(&path) {
        let mut info = LoopInfo::empty();
        // SAFETY: the structure has the layout of the kernel and lives through the call.
        let told = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
        let is_ours = told == 0 && (info.device, info.inode) == file;
        // SAFETY: the descriptor is open; the call has no argument.
        if is_ours && unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if added && sysfs(number).exists() && !sysfs(number).join("loop/backing_file").exists() {
        let control = File::options()
            .read(true)
            .write(true)
            .open("/dev/loop-control")?;
        let number = libc::c_ulong::from(number);
        // SAFETY: the descriptor is open; the argument is a number.
        if unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_REMOVE, number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
