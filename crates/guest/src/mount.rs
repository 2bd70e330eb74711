//! Mounts the file systems that a guest needs.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;

use crate::error::{GuestError, io};

/// Flags of a mount of kernel objects: nothing on it can be executed or opened as a device.
const PLAIN: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Mounts a file system of type `kind` at `target`, and creates the folder if needed.
pub fn mount(source: &str, target: &str, kind: &str, options: &str) -> Result<(), GuestError> {
    std::fs::create_dir_all(target).map_err(io("making folder", target))?;
    call(source, target, kind, 0, options)
}

/// Mounts a file system of type `kind` read-only at `target`, which must exist.
pub fn mount_read_only(source: &str, target: &str, kind: &str) -> Result<(), GuestError> {
    call(source, target, kind, PLAIN | libc::MS_RDONLY, "")
}

/// Makes the folder `source` of kernel objects visible at `target`, which must exist.
pub fn bind(source: &str, target: &str) -> Result<(), GuestError> {
    call(source, target, "", libc::MS_BIND, "")?;
    // When the kernel makes a bind mount, it ignores other flags. So a remount sets them.
    let flags = libc::MS_REMOUNT | libc::MS_BIND | PLAIN;
    call(source, target, "", flags, "")
}

/// Calls mount(2) with these arguments.
fn call(
    source: &str,
    target: &str,
    kind: &str,
    flags: libc::c_ulong,
    options: &str,
) -> Result<(), GuestError> {
    let text = |s: &str| {
        CString::new(s).map_err(|_| io("mounting", target)(io::Error::other("zero byte in a name")))
    };
    let (c_source, c_target, c_kind, c_options) =
        (text(source)?, text(target)?, text(kind)?, text(options)?);
    // SAFETY: all pointers are C strings that live through the call.
    let status = unsafe {
        libc::mount(
            c_source.as_ptr(),
            c_target.as_ptr(),
            c_kind.as_ptr(),
            flags,
            c_options.as_ptr().cast(),
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io("mounting", format!("{source} on {target}"))(
            io::Error::last_os_error(),
        ))
    }
}

/// Changes the options of the file system that is mounted at `target`.
pub fn change(target: &str, options: &str) -> Result<(), GuestError> {
    // The kernel ignores source and type of a remount.
    call(target, target, "", libc::MS_REMOUNT, options)
}

/// Unmounts the file system at `target`.
pub fn unmount(target: &str) -> Result<(), GuestError> {
    let path = CString::new(target)
        .map_err(|_| io("unmounting", target)(io::Error::other("zero byte in a name")))?;
    // SAFETY: the path is a C string that lives through the call.
    match unsafe { libc::umount2(path.as_ptr(), 0) } {
        0 => Ok(()),
        _ => Err(io("unmounting", target)(io::Error::last_os_error())),
    }
}

/// Mounts the file systems that every trial needs. Makes the kernel write time stamps into its log: the log is judged by
/// them, and a kernel without `CONFIG_PRINTK_TIME` writes none by default.
pub fn all() -> Result<(), GuestError> {
    mount("proc", "/proc", "proc", "")?;
    mount("sysfs", "/sys", "sysfs", "")?;
    let _ = fs::write("/sys/module/printk/parameters/time", "Y");
    if !Path::new("/dev/mem").exists() {
        mount("devtmpfs", "/dev", "devtmpfs", "")?;
    }
    // Some kernels do not have these file systems. A scenario that needs one reports that it is missing.
    let _ = mount("cgroup2", "/sys/fs/cgroup", "cgroup2", "");
    let _ = mount("debugfs", "/sys/kernel/debug", "debugfs", "");
    let _ = mount("tracefs", "/sys/kernel/tracing", "tracefs", "");
    Ok(())
}
