//! The root of a user's program: its image is copied to the simulated disk and mounted, with the usual device nodes and
//! mounts.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};

use pagetide_quantity::Bytes;
use pagetide_scenario::Group;
use pagetide_system::{Mapping, Source};

use crate::error::{GuestError, io};
use crate::mount::{bind, mount, mount_read_only};
use crate::spec::MOUNT_POINT;

/// Path, in the initial file system, of the table of the image's pieces. For each: offset on the disk u64, length u64;
/// little endian, multiples of the page size. The content of the pieces is stored one after the other in the trace
/// area, which is otherwise unused during boot, so they use no memory of the guest.
pub const PIECES: &str = "/program.pieces";

/// Maximum size of a mapping of the trace area in bytes.
const WINDOW_BYTES: u64 = 4 << 20;
/// Size of an entry of the table of pieces in bytes.
const ENTRY_BYTES: usize = 16;

/// Device nodes for programs: name, major and minor number. Source: kernel `Documentation/admin-guide/devices.txt`.
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// Symbolic links in `/dev` for programs: name and target.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Writes the image of the program's root from the trace area to the disk `device`, and mounts it. The disk must
/// contain only zeros. `area` is the address and size of the trace area in memory.
pub fn prepare(device: &str, size: Bytes, area: (u64, u64)) -> Result<(), GuestError> {
    write(device, size, area)?;
    mount(device, MOUNT_POINT, "ext4", "")
}

/// Mounts `/proc` and `/sys` in an existing root, populates its `/dev`, and brings up the loopback interface.
pub fn furnish() -> Result<(), GuestError> {
    mount("proc", &format!("{MOUNT_POINT}/proc"), "proc", "")?;
    kernel_objects(&format!("{MOUNT_POINT}/sys"))?;
    devices(&format!("{MOUNT_POINT}/dev"))?;
    // A kernel without a network stack can still run programs that need no network.
    let _ = loopback();
    Ok(())
}

fn write(device: &str, size: Bytes, (area, room): (u64, u64)) -> Result<(), GuestError> {
    let fault = |e| io("writing the program's files to", device)(e);
    let table = fs::read(PIECES).map_err(io("reading", PIECES))?;
    let disk = File::options().write(true).open(device).map_err(fault)?;
    let memory = File::open("/dev/mem").map_err(io("opening the trace area in", "/dev/mem"))?;
    let mut from = 0;
    for entry in table.chunks_exact(ENTRY_BYTES) {
        let (offset, length) = entry.split_at(8);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let (mut offset, left) = (number(offset), number(length));
        if offset.saturating_add(left) > size.0 || from + left > room {
            return Err(fault(io::Error::other("its pieces do not fit")));
        }
        copy(&memory, (area + from, left), |piece| {
            disk.write_all_at(piece, offset)?;
            offset += piece.len() as u64;
            Ok(())
        })
        .map_err(fault)?;
        from += left;
    }
    disk.sync_all().map_err(fault)?;
    let _ = fs::remove_file(PIECES);
    Ok(())
}

/// Maps `length` bytes of physical memory from an address on, and passes them to `take` one window at a time. Address
/// and length must be multiples of the page size.
pub(crate) fn copy(
    memory: &File,
    (mut at, mut left): (u64, u64),
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    while left > 0 {
        let length = left.min(WINDOW_BYTES);
        let bytes = usize::try_from(length).unwrap_or(0);
        let window = Mapping::new(Source::ReadOnly(memory.as_fd(), at), bytes)?;
        // SAFETY: the window has that many bytes, lives to the end of this block, and nobody writes to the area now: the
        // controller did before the guest started, and the observer has not been started.
        take(unsafe { std::slice::from_raw_parts(window.start(), bytes) })?;
        at += length;
        left -= length;
    }
    Ok(())
}

/// Mounts sysfs read-only at `folder`, and the program's memory cgroup at `fs/cgroup` below it, where programs expect the
/// root of cgroups. The program may make groups in its own, and can change neither settings nor its own limits.
fn kernel_objects(folder: &str) -> Result<(), GuestError> {
    mount_read_only("sysfs", folder, "sysfs")?;
    // The group is made before the ready point, so that its memory is not taken from the workload. On a kernel without
    // memory cgroups, nothing is mounted there.
    let Ok(group) = Group::of_program() else {
        return Ok(());
    };
    let path = group.folder().to_string_lossy();
    group
        .delegate()
        .map_err(io("handing the program its memory group", &*path))?;
    bind(&path, &format!("{folder}/fs/cgroup"))
}

/// Creates the device nodes of a program in `folder`, on the program's file system, and mounts a tmpfs at `shm` in it.
fn devices(folder: &str) -> Result<(), GuestError> {
    for (name, major, minor) in DEVICES {
        let path = format!("{folder}/{name}");
        let _ = fs::remove_file(&path);
        let c_path = CString::new(path.as_str())
            .map_err(|_| io("making", path.as_str())(io::Error::other("a zero byte")))?;
        // SAFETY: the path is a C string that lives through the call.
        let made = unsafe {
            libc::mknod(
                c_path.as_ptr(),
                libc::S_IFCHR | 0o666,
                libc::makedev(major, minor),
            )
        };
        if made != 0 {
            return Err(io("making the device", path)(io::Error::last_os_error()));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))
            .map_err(io("making the device", path))?;
    }
    for (name, target) in LINKS {
        let path = format!("{folder}/{name}");
        let _ = fs::remove_file(&path);
        symlink(target, &path).map_err(io("making", path))?;
    }
    // POSIX shared memory; kernels without tmpfs have none.
    let _ = mount(
        "tmpfs",
        &format!("{folder}/shm"),
        "tmpfs",
        "mode=1777,size=100%",
    );
    Ok(())
}

/// Brings up the loopback network interface.
fn loopback() -> io::Result<()> {
    let check = |status: libc::c_int| {
        if status < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(status)
        }
    };
    // SAFETY: takes three numbers.
    let socket =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: a request of zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: the request lives through the call, and names the interface with a zero byte behind it.
    let up = unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) };
    let result = check(up).map(drop);
    // SAFETY: nobody else has the descriptor.
    unsafe { libc::close(socket) };
    result
}
