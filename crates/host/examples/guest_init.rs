//! PID 1 of a guest in which the tests of this crate run, as root or as a user with a delegated control group.
//!
//! The file `/order` has one word in each line: `root`, `user` or `user-with-swap`, the folder on which the disk is
//! mounted, then the program to run with its arguments. The last line of the console is `guest: ended with STATUS`.

use std::error::Error;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use pagetide_host::{Journal, StateFolder, SwapDevice, SwapOn};
use pagetide_quantity::Bytes;
use rustix::mount::{MountFlags, mount};
use rustix::process::{WaitOptions, wait};
use rustix::system::{RebootCommand, init_module, reboot};

/// Number of the user without privileges.
const USER: u32 = 1000;

fn main() {
    let ended = match go() {
        Ok(status) => status,
        Err(error) => error.to_string(),
    };
    println!("guest: ended with {ended}");
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
}

fn go() -> Result<String, Box<dyn Error>> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("cgroup2", "/sys/fs/cgroup"),
        ("tmpfs", "/tmp"),
    ] {
        fs::create_dir_all(place)?;
        mount(kind, place, kind, MountFlags::empty(), None)?;
    }
    let mut modules: Vec<_> = fs::read_dir("/modules")?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    modules.sort();
    for module in modules {
        init_module(&fs::read(&module)?, c"")
            .map_err(|why| format!("{}: {why}", module.display()))?;
    }
    let order = fs::read_to_string("/order")?;
    let mut words = order.lines();
    let who = words.next().unwrap_or_default();
    let disk = words.next().ok_or("no folder for the disk")?;
    fs::create_dir_all(disk)?;
    mount("/dev/vda", disk, "ext4", MountFlags::empty(), None)?;
    let mut command = Command::new(words.next().ok_or("no program")?);
    command
        .args(words)
        .envs([
            ("HOME", disk),
            ("TMPDIR", disk),
            ("PATH", "/bin:/usr/bin:/usr/sbin"),
        ])
        // No other program runs here, so that a test can tell from free memory what it used.
        .env("PAGETIDE_TEST_ALONE", "1");
    if who == "user-with-swap" {
        swap_for_all()?;
    }
    if who.starts_with("user") {
        let group = delegate()?;
        chown(disk, Some(USER), Some(USER))?;
        // SAFETY: only writes a file and changes the identity of the child; this process has one thread.
        unsafe {
            command.pre_exec(move || {
                fs::write(group.join("cgroup.procs"), "0")?;
                if libc::setgid(USER) != 0 || libc::setuid(USER) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
    }
    let child = command.spawn()?;
    // Orphans become children of PID 1.
    loop {
        let Some((pid, status)) = wait(WaitOptions::empty())? else {
            continue;
        };
        if pid.as_raw_pid().cast_unsigned() == child.id() {
            return Ok(format!("{status:?}"));
        }
    }
}

/// Switches on swap on a zram device for all processes, as an administrator does.
fn swap_for_all() -> Result<(), Box<dyn Error>> {
    let choices = fs::read_to_string("/sys/block/zram0/comp_algorithm")?;
    let chosen = choices
        .split_whitespace()
        .find(|name| name.starts_with('['));
    let compressor = chosen.unwrap_or_default().trim_matches(['[', ']']);
    let on = SwapOn::Zram {
        compressor: compressor.to_owned(),
    };
    let journal = Journal::create(&StateFolder::at("/swap"))?;
    // It stays on until the guest ends.
    std::mem::forget(SwapDevice::switch_on(&journal, &on, Bytes::from_mib(256))?);
    Ok(())
}

/// Makes a control group that belongs to the user, as systemd does with `Delegate=yes`.
fn delegate() -> Result<std::path::PathBuf, Box<dyn Error>> {
    let root = Path::new("/sys/fs/cgroup");
    fs::write(root.join("cgroup.subtree_control"), "+memory")?;
    let group = root.join("user.scope");
    fs::create_dir(&group)?;
    for file in [
        "",
        "cgroup.procs",
        "cgroup.subtree_control",
        "cgroup.threads",
    ] {
        chown(group.join(file), Some(USER), Some(USER))?;
    }
    Ok(group)
}
