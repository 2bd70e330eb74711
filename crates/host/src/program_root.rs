//! The file system of a user's program: its files in the work folder, and the mounts that it sees.
//!
//! All mounts are made in namespaces of the workload's process, so they disappear with it in any case. The program sees
//! no other process, no network but loopback, and no file outside of its root. Without root, the namespaces include a
//! user namespace, in which the user has the number that programs have as root.

use std::ffi::{CStr, CString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use pagetide_root::{ImageEntry, ImageKind, Root, USER};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change, mount_remount};
use rustix::process::{getegid, geteuid};

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
/// Maximum number of bytes copied at once.
const PIECE: usize = 1 << 20;

/// Writes the files of a root into an empty folder, syncs them and drops them from the page cache. Without root, all files
/// belong to the user.
pub(crate) fn install(root: &Root, folder: &Path) -> io::Result<()> {
    let image = root.open().map_err(io::Error::other)?;
    let entries = root.entries(&image).map_err(io::Error::other)?;
    let mut files = Vec::new();
    for entry in &entries {
        let inside = entry.path.trim_start_matches('/');
        let path = folder.join(inside);
        let fault = |why: io::Error| io::Error::other(format!("{}: {why}", path.display()));
        make(entry, &path, &image).map_err(fault)?;
        if matches!(entry.kind, ImageKind::File { .. }) {
            files.push(path);
        }
    }
    for path in files {
        let file = File::open(path)?;
        file.sync_all()?;
        // SAFETY: advice on an open file changes no content.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    Ok(())
}

fn make(entry: &ImageEntry, path: &Path, image: &File) -> io::Result<()> {
    // Nobody else may give files away.
    let owner = geteuid().is_root().then_some(entry.owner);
    match &entry.kind {
        ImageKind::Link(target) => {
            symlink(target, path)?;
            return lchown(path, owner, owner);
        }
        ImageKind::Folder => match fs::create_dir(path) {
            Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(why),
            _ => {}
        },
        ImageKind::File { size, parts } => {
            let file = File::create_new(path)?;
            file.set_len(*size)?;
            let mut buffer = vec![0; PIECE];
            for (at, from, length) in parts {
                // The last block of a file is stored in full.
                let end = (*at + *length).min(*size);
                let mut at = *at;
                let mut from = *from;
                while at < end {
                    let most = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
                    let piece = &mut buffer[..most];
                    image.read_exact_at(piece, from)?;
                    file.write_all_at(piece, at)?;
                    at += most as u64;
                    from += most as u64;
                }
            }
        }
    }
    chown(path, owner, owner)?;
    fs::set_permissions(path, Permissions::from_mode(entry.mode))
}

/// Moves the workload's process into new mount, network and IPC namespaces, so that no other process sees its mounts.
/// Its children are in a new PID namespace, in which the first child is PID 1.
pub(crate) fn isolate() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    let mut flags =
        libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC;
    if !user.is_root() {
        flags |= libc::CLONE_NEWUSER;
    }
    // SAFETY: takes a number; this process has a single thread.
    if unsafe { libc::unshare(flags) } != 0 {
        let why = io::Error::last_os_error();
        return Err(if user.is_root() {
            why
        } else {
            io::Error::other(format!(
                "{why}: without root, this needs user namespaces, which sysctl may forbid (kernel.unprivileged_userns_clone, \
                 kernel.apparmor_restrict_unprivileged_userns): run it as root"
            ))
        });
    }
    if !user.is_root() {
        // Source: user_namespaces(7): an ordinary user may map itself alone, and must give up setgroups(2) before.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{USER} {} 1", user.as_raw()))?;
        fs::write("/proc/self/gid_map", format!("{USER} {} 1", group.as_raw()))?;
    }
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", flags)?;
    // A kernel without a network stack can still run programs that need no network.
    let _ = loopback();
    Ok(())
}

/// Mounts `/proc` for the new PID namespace, and in `root` all file systems that the program sees. Called by PID 1 of
/// that namespace.
pub(crate) fn furnish(root: &Path, group: &Path) -> io::Result<()> {
    let fixed = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mounted = |kind: &'static str, target: &Path, flags, options: Option<&CStr>| {
        let fault = |why: io::Error| {
            io::Error::other(format!("mounting {kind} on {}: {why}", target.display()))
        };
        fs::create_dir_all(target).map_err(fault)?;
        mount(kind, target, kind, flags, options).map_err(|why| fault(why.into()))
    };
    let none = MountFlags::empty();
    mounted("proc", Path::new("/proc"), none, None)?;
    mounted("proc", &root.join("proc"), none, None)?;
    let sys = root.join("sys");
    mounted("sysfs", &sys, fixed, None)?;
    // With version 1, the controllers' folders cannot be made in sysfs, and the program sees no group.
    if group.join("memory.max").exists() {
        let target = sys.join("fs/cgroup");
        mount(group, &target, "", MountFlags::BIND, None)?;
        mount_remount(&target, MountFlags::BIND | fixed, "")?;
    }
    let dev = root.join("dev");
    let shm = dev.join("shm");
    let memory = MountFlags::NOSUID;
    mounted("tmpfs", &dev, memory, Some(c"mode=755,size=64k"))?;
    for (name, major, minor) in DEVICES {
        let path = dev.join(name);
        if geteuid().is_root() {
            node(&path, major, minor)?;
        } else {
            // Only root may make devices, so the machine's own is shown.
            File::create(&path)?;
            mount(
                Path::new("/dev").join(name),
                &path,
                "",
                MountFlags::BIND,
                None,
            )?;
        }
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name))?;
    }
    mounted(
        "tmpfs",
        &shm,
        memory | MountFlags::NODEV,
        Some(c"mode=1777"),
    )
}

fn node(path: &Path, major: u32, minor: u32) -> io::Result<()> {
    let text = CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: the path is a C string that lives through the call.
    let made = unsafe {
        libc::mknod(
            text.as_ptr(),
            libc::S_IFCHR | 0o666,
            libc::makedev(major, minor),
        )
    };
    if made != 0 {
        let why = io::Error::last_os_error();
        return Err(io::Error::other(format!(
            "making {}: {why}",
            path.display()
        )));
    }
    fs::set_permissions(path, Permissions::from_mode(0o666))
}

/// Brings up the loopback interface of the namespace.
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
