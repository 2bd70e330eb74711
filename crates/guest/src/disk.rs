//! A simulated rotating disk inside the guest: a block device whose requests are served by a process of the guest
//! program.
//!
//! The kernel's own simulated disk completes every request after the same time, regardless of its position. Here the
//! kernel's nbd driver passes each request to a process over a socket pair. The process waits until the modelled disk
//! is done ([`arm`]) and replies ([`server`]). The content of the disk is in the locked memory of that process.
//! Everything stays inside the guest, so trials stay exact.
//!
//! The kernel queues and merges requests as for any single disk, with the scheduler `mq-deadline`, Debian's default for
//! such a disk. The socket towards the process holds only a few requests; the others wait in the scheduler, where they
//! are sorted.

mod arm;
mod server;

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use pagetide_harness::swap::present;
use pagetide_quantity::Bytes;
use pagetide_record::DiskSpec;

use crate::error::{GuestError, io};

/// Prefix of the paths of the disks' devices; the number of the disk follows.
pub const DEVICES: &str = "/dev/nbd";
/// I/O scheduler of the disks; set only if the kernel has it.
const SCHEDULER: &str = "mq-deadline";
/// Block size of the disks in bytes.
const BLOCK_BYTES: u64 = 4096;
/// Socket buffer towards the process, in bytes: the minimum, so that requests wait in the scheduler, where they are
/// sorted.
const TO_SERVER: libc::c_int = 1;
/// Size of the socket buffer towards the kernel in bytes. The buffer is filled from kernel memory.
const TO_KERNEL: libc::c_int = 32 << 10;
/// Maximum time to wait until a device becomes available, in milliseconds.
const PATIENCE_MS: u32 = 10_000;

// Source: kernel `include/uapi/linux/nbd.h`.
const NBD_SET_SOCK: libc::Ioctl = 0xab00;
const NBD_SET_BLKSIZE: libc::Ioctl = 0xab01;
const NBD_DO_IT: libc::Ioctl = 0xab03;
const NBD_SET_SIZE_BLOCKS: libc::Ioctl = 0xab07;
const NBD_SET_FLAGS: libc::Ioctl = 0xab0a;
/// Flags of the nbd device: bit 0 states that there are flags, bit 4 that the disk is rotational. Not every kernel
/// supports the second one, so [`start`] also sets `queue/rotational` in sysfs.
const FLAGS: libc::c_ulong = 1 | 1 << 4;

/// Starts the simulated disk with this number. Returns the path of the disk's device. The disk is declared as
/// rotational.
pub fn start(number: usize, size: Bytes, spec: DiskSpec) -> Result<String, GuestError> {
    let device = format!("{DEVICES}{number}");
    present(&device)?;
    let fault = |what: &'static str| io(what, device.as_str());
    let length = usize::try_from(size.0)
        .map_err(|_| fault("sizing the disk")(io::ErrorKind::OutOfMemory.into()))?;
    let (kernel, process) = sockets().map_err(fault("making the sockets of"))?;
    buffer(&kernel, TO_SERVER);
    buffer(&process, TO_KERNEL);
    child(|| -> i32 { server::run(&process, length, spec) })
        .map_err(fault("starting the process of"))?;
    let holder = child(|| hold(&device, kernel.as_raw_fd(), size))
        .map_err(fault("starting the holder of"))?;
    drop((kernel, process));
    let queue = format!("/sys/block/nbd{number}");
    wait(&queue, size, holder).map_err(fault("connecting"))?;
    // The kernel selects its swap slot allocator and read-ahead by this attribute when swap is enabled.
    let rotational = format!("{queue}/queue/rotational");
    fs::write(&rotational, "1").map_err(io("setting", rotational.as_str()))?;
    let read_back = fs::read_to_string(&rotational).unwrap_or_default();
    if read_back.trim() != "1" {
        return Err(io("reading back", rotational)(io::Error::other(
            "the kernel does not treat it as a rotational disk",
        )));
    }
    // A kernel without this scheduler keeps its default, which the record's facts show.
    let _ = fs::write(format!("{queue}/queue/scheduler"), SCHEDULER);
    Ok(device)
}

/// Returns the queue attributes `rotational` and `scheduler` of a disk, as (name, value), for the record.
pub fn facts(device: &str) -> [(String, String); 2] {
    let name = device.rsplit('/').next().unwrap_or(device);
    ["rotational", "scheduler"].map(|file| {
        let path = format!("/sys/block/{name}/queue/{file}");
        let text = fs::read_to_string(path).unwrap_or_default();
        (format!("{file}-{name}"), text.trim().to_owned())
    })
}

/// Connects a device to a socket, and returns when the device is disconnected. Returns the error number as exit status.
fn hold(device: &str, socket: RawFd, size: Bytes) -> i32 {
    let number = || io::Error::last_os_error().raw_os_error().unwrap_or(1);
    let path = CString::new(device).unwrap_or_default();
    // SAFETY: the path is a C string that lives through the call.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if fd < 0 {
        return number();
    }
    let socket = libc::c_ulong::try_from(socket).unwrap_or(0);
    for (request, argument) in [
        (NBD_SET_BLKSIZE, BLOCK_BYTES),
        (NBD_SET_SIZE_BLOCKS, size.0 / BLOCK_BYTES),
        (NBD_SET_FLAGS, FLAGS),
        (NBD_SET_SOCK, socket),
        (NBD_DO_IT, 0),
    ] {
        // SAFETY: these requests take a number, no pointer; the descriptors are open.
        if unsafe { libc::ioctl(fd, request, argument) } < 0 {
            return number();
        }
    }
    libc::EPIPE
}

/// Waits until the device exists with its full size. Fails if the process `holder` exits or [`PATIENCE_MS`] is over.
fn wait(folder: &str, size: Bytes, holder: libc::pid_t) -> io::Result<()> {
    let sectors = (size.0 / 512).to_string();
    for _ in 0..PATIENCE_MS {
        let found = fs::read_to_string(format!("{folder}/size")).unwrap_or_default();
        if found.trim() == sectors && fs::exists(format!("{folder}/pid"))? {
            return Ok(());
        }
        let mut status = 0;
        // SAFETY: `status` lives through the call.
        if unsafe { libc::waitpid(holder, &raw mut status, libc::WNOHANG) } == holder {
            return Err(io::Error::from_raw_os_error(libc::WEXITSTATUS(status)));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Runs `work` in a child process that the OOM killer does not select. Returns the process ID.
pub(crate) fn child(work: impl FnOnce() -> i32) -> io::Result<libc::pid_t> {
    // SAFETY: PID 1 has a single thread, so the child may go on with ordinary code.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let _ = fs::write("/proc/self/oom_score_adj", "-1000");
            let status = work();
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(status) }
        }
        pid => Ok(pid),
    }
}

/// Creates a connected pair of stream sockets.
fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: the pair lives through the call and has room for both.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new and nobody else's.
    Ok(unsafe { (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])) })
}

/// Sets the send buffer size of a socket in bytes; the kernel enforces a minimum.
fn buffer(socket: &OwnedFd, bytes: libc::c_int) {
    let length = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(4);
    // SAFETY: the value lives through the call and has the given length.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            (&raw const bytes).cast(),
            length,
        )
    };
}
