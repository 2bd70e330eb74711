//! Requests to the driver of loop devices: block devices whose content is a file.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

// Source: kernel include/uapi/linux/loop.h.
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const LOOP_CTL_ADD: libc::c_ulong = 0x4C80;
const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Block size of the loop device in bytes. Direct I/O needs at least the block size of the disk.
const BLOCK: u32 = 4096;

/// The kernel's `struct loop_info64`.
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

/// The kernel's `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// A connected loop device. The kernel disconnects it when the last user closes it; swap on the device is such a
/// user.
#[derive(Debug)]
pub struct LoopDevice {
    /// Path of the device.
    pub path: PathBuf,
    /// True if reads and writes of the device bypass the page cache of its file.
    pub is_direct: bool,
    /// Open file that keeps the device connected.
    _open: OwnedFd,
}

/// Returns the folder of a loop device in sysfs.
pub(crate) fn sysfs(number: u32) -> PathBuf {
    PathBuf::from(format!("/sys/block/loop{number}"))
}

/// Connects a loop device to a file. Adds the device first if there is none with this number.
pub(crate) fn configure(control: &File, number: u32, file: &File) -> io::Result<LoopDevice> {
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
        is_direct: direct.trim() == "1",
        _open: device.into(),
    })
}

/// Disconnects loop device `number` if its backing file still is `file`, given as device and inode number. If `added`
/// is true, also removes the loop device, unless it still has a backing file.
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
