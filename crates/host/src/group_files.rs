//! Operations on the folder of a cgroup, of version 1 or 2: listing processes, killing them, and removal.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Polling interval while waiting for processes of a cgroup to exit.
const PAUSE: Duration = Duration::from_millis(10);
/// Maximum wait until killed processes are gone. A process that waits for a slow disk exits only after its request.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the PIDs of the processes in a cgroup itself, without those in cgroups below it; empty if the cgroup is
/// gone.
pub fn members(group: &Path) -> Vec<u32> {
    fs::read_to_string(group.join("cgroup.procs"))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect()
}

/// Returns a cgroup and all cgroups in it, innermost first.
pub fn tree(group: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    for entry in entries {
        // Symbolic links are not groups.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(tree(&entry.path()));
        }
    }
    all.push(group.to_owned());
    all
}

/// Returns the PIDs of the processes in a cgroup and in all cgroups in it.
pub fn all_members(group: &Path) -> Vec<u32> {
    tree(group)
        .iter()
        .flat_map(|group| members(group))
        .collect()
}

/// Sends SIGKILL to every process in a cgroup and in the cgroups in it, without waiting for them to exit.
pub fn kill(group: &Path) {
    // Since kernel 5.14, one write kills all processes, also those that are just being forked.
    if fs::write(group.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for pid in all_members(group) {
        let pid = pid.cast_signed();
        if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 1) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Kills every process in a cgroup and in the cgroups in it, and waits at most `patience` until they are gone. Returns
/// the number of processes that remain.
pub fn empty(group: &Path, patience: Duration) -> usize {
    let began = Instant::now();
    loop {
        let remain = all_members(group).len();
        if remain == 0 {
            return 0;
        }
        // Repeated, because a process may have forked while the list was read.
        kill(group);
        if began.elapsed() >= patience {
            return remain;
        }
        sleep(PAUSE);
    }
}

/// Kills every process in a cgroup, and removes the cgroup with all cgroups in it. Succeeds if the cgroup is already
/// gone. Fails if this takes longer than [`PATIENCE`].
pub fn remove(group: &Path) -> io::Result<()> {
    let began = Instant::now();
    loop {
        if !group.is_dir() {
            return Ok(());
        }
        let remain = empty(group, PATIENCE);
        if remain > 0 {
            return Err(io::Error::other(format!(
                "{remain} of its processes cannot be killed"
            )));
        }
        // Version 1: drops the page cache of the group. Otherwise it would stay charged to the removed group.
        let _ = fs::write(group.join("memory.force_empty"), "0");
        let mut last = None;
        for group in tree(group) {
            match fs::remove_dir(&group) {
                Err(why) if why.kind() != ErrorKind::NotFound => last = Some(why),
                _ => {}
            }
        }
        match last {
            None => return Ok(()),
            Some(why) if began.elapsed() >= PATIENCE => return Err(why),
            Some(_) => sleep(PAUSE),
        }
    }
}

/// Moves every process of a cgroup to its parent, and removes the cgroup. Succeeds if the cgroup is already gone. Fails
/// if this takes longer than [`PATIENCE`].
pub fn dissolve(group: &Path) -> io::Result<()> {
    let parent = group.parent().unwrap_or(group).join("cgroup.procs");
    let began = Instant::now();
    loop {
        if !group.is_dir() {
            return Ok(());
        }
        let mut last = None;
        for pid in members(group) {
            if let Err(why) = fs::write(&parent, pid.to_string()) {
                last = Some(why);
            }
        }
        match fs::remove_dir(group) {
            Ok(()) => return Ok(()),
            Err(why) if began.elapsed() >= PATIENCE => return Err(last.unwrap_or(why)),
            Err(_) => sleep(PAUSE),
        }
    }
}

/// Returns the number in a file that contains one number; `None` if it cannot be read or is `max`.
pub fn number(group: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(group.join(file))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Returns the number in the line of `name`, in a file with a name and a number in each line; `None` if there is none.
pub fn number_of(group: &Path, file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(group.join(file)).ok()?;
    text.lines().find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(' ')?
            .trim()
            .parse()
            .ok()
    })
}

/// Returns the swap space in bytes that a cgroup of version 1 and all cgroups in it use, including pages in the swap
/// cache; `None` if it does not count swap.
pub fn swap_of_version_1(group: &Path) -> Option<u64> {
    let file = "memory.stat";
    let swap = number_of(group, file, "total_swap")?;
    Some(swap + number_of(group, file, "total_swapcached").unwrap_or(0))
}
