//! Undoes changes. Each function may be repeated after an interruption, and leaves alone what pagetide no longer owns.

use std::ffi::CString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pagetide_probe::trace::Tracefs;
use pagetide_quantity::Bytes;
use pagetide_record::setting::means;
use pagetide_system::swaps;
use rustix::mount::{UnmountFlags, unmount};

use crate::change::{Change, SettingFile};
use crate::foreign::{self, ForeignUse};
use crate::group_files;
use crate::loop_control;
use crate::swap_header;

/// Maximum wait until a swap area can be switched off without harm to other processes. The kernel frees the last pages
/// of killed processes with a delay.
const FOREIGN_PATIENCE: Duration = Duration::from_secs(10);
/// Polling interval while waiting for a swap area, or for the removal of a tracing instance.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of processes with pages in a swap area that a message names.
const NAMED: usize = 3;
/// Start of the names of all tracing instances that pagetide makes.
const TRACE_PREFIX: &str = "pagetide-";

/// Sends SIGKILL to all processes of the cgroups among `changes`, without waiting for them to exit. Their pages in swap
/// are then freed instead of being read back into memory.
pub(crate) fn kill_groups<'a>(changes: impl Iterator<Item = &'a Change>) {
    for change in changes {
        if let Change::Group { path } = change {
            group_files::kill(path);
        }
    }
}

/// Undoes a change. A change that is no longer in effect, or was replaced by another program, is left alone. The error
/// says why it cannot be undone.
pub(crate) fn undo(change: &Change) -> Result<(), String> {
    let text = |why: io::Error| why.to_string();
    match change {
        Change::Group { path } => group_files::remove(path).map_err(text),
        Change::Leaf { path } => group_files::dissolve(path).map_err(text),
        Change::Controller { group } => {
            let path = group.join("cgroup.subtree_control");
            match fs::write(path, "-memory") {
                Err(why) if why.kind() != ErrorKind::NotFound => Err(why.to_string()),
                _ => Ok(()),
            }
        }
        Change::Settings { files } => settings(files),
        Change::Loop {
            number,
            device,
            inode,
            added,
        } => loop_control::release(*number, (*device, *inode), *added).map_err(text),
        Change::Zram { name, size, uuid } => zram(name, *size, uuid).map_err(text),
        Change::Swap { device, uuid } => swap(device, uuid),
        Change::Folder { path } => gone(fs::remove_dir_all(path)).map_err(text),
        Change::File { path } => gone(fs::remove_file(path)).map_err(text),
        Change::Mount { path } => match unmount(path, UnmountFlags::DETACH) {
            // Nothing is mounted there, or the folder is gone.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) | Ok(()) => Ok(()),
            Err(why) => Err(why.to_string()),
        },
        Change::TraceInstance { name } => trace_instances(name),
    }
}

/// Returns the result of a removal, but success if there was nothing to remove ("not found").
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns the value in a setting's file; `None` if it cannot be read.
fn value(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Restores the files that still have pagetide's value, and those that may have changed as a side effect. If no file
/// has pagetide's value any more, another program has changed them, and nothing is written.
fn settings(files: &[SettingFile]) -> Result<(), String> {
    let stands = |file: &&SettingFile| match (&file.ours, value(&file.path)) {
        (Some(ours), Some(now)) => means(&now, ours),
        _ => false,
    };
    let ours: Vec<&SettingFile> = files.iter().filter(stands).collect();
    if ours.is_empty() {
        return Ok(());
    }
    let beside = files.iter().filter(|file| file.ours.is_none());
    let all: Vec<&SettingFile> = ours.iter().copied().chain(beside).collect();
    let differs =
        |file: &&&SettingFile| value(&file.path).is_some_and(|now| !means(&now, &file.old));
    // Written twice, because one setting may reset another: `vm.dirty_bytes` cannot be set to zero directly, but
    // writing `vm.dirty_ratio` does so.
    let mut why = None;
    for _ in 0..2 {
        for file in all.iter().filter(differs) {
            why = fs::write(&file.path, &file.old).err().or(why);
        }
    }
    match all.iter().find(differs) {
        None => Ok(()),
        Some(file) => Err(format!(
            "{} does not take its old value `{}`{}",
            file.path.display(),
            file.old,
            why.map_or_else(String::new, |why| format!(" ({why})"))
        )),
    }
}

/// Switches a swap area off. Waits while reading back the pages of other processes in it could bring a cgroup to its
/// limit, and fails if that stays so.
fn swap(device: &str, uuid: &str) -> Result<(), String> {
    let is_on = || swaps::areas().iter().any(|path| path == device);
    if !is_on() || swap_header::uuid(device).as_deref() != Some(uuid) {
        return Ok(());
    }
    let path = CString::new(device).unwrap_or_default();
    let began = Instant::now();
    loop {
        let foreign = ForeignUse::of(device, None);
        let is_over = began.elapsed() >= FOREIGN_PATIENCE;
        if foreign.allows_switching_off() {
            // SAFETY: the path is a C string that lives through the call, which keeps no pointer to it.
            if unsafe { libc::swapoff(path.as_ptr()) } == 0 || !is_on() {
                return Ok(());
            }
            let why = io::Error::last_os_error();
            // With room for all pages, 6.18 once said ENOMEM while a process read its pages back. A later call succeeded.
            if why.kind() != ErrorKind::OutOfMemory || is_over {
                return Err(format!("swapoff: {why}"));
            }
        } else if is_over {
            return Err(in_use(foreign.used));
        }
        sleep(PAUSE);
    }
}

/// Says that `used` bytes of a swap area are in use, and which processes have most pages in swap.
fn in_use(used: Bytes) -> String {
    let owners: Vec<String> = foreign::owners(None, NAMED)
        .into_iter()
        .map(|(name, swap)| format!("{name} has {swap}"))
        .collect();
    let owners = match owners.join(", ") {
        none if none.is_empty() => String::new(),
        owners => format!(" ({owners})"),
    };
    format!(
        "other processes have pages in it, {used} are used{owners}, and reading them back could kill these processes"
    )
}

/// Resets a zram device, unless its size or the UUID of its swap area differs from the recorded one.
fn zram(name: &str, size: u64, uuid: &str) -> io::Result<()> {
    let folder = Path::new("/sys/block").join(name);
    let read = |file: &str| value(&folder.join(file)).unwrap_or_default();
    if read("initstate") != "1" || read("disksize") != size.to_string() {
        return Ok(());
    }
    match swap_header::uuid(&swap_header::node(name)) {
        Some(other) if other != uuid => return Ok(()),
        _ => {}
    }
    fs::write(folder.join("reset"), "1")
}

/// Removes instances from tracefs, which need not be mounted.
fn trace_instances(name: &str) -> Result<(), String> {
    let tracefs = Tracefs::open().map_err(|why| why.to_string())?;
    trace_instances_in(&tracefs.root().join("instances"), name)
}

/// Removes the instance with this name from a folder. If the name ends with a hyphen, removes all instances whose name
/// is this name followed by a number. Any other instance belongs to somebody else, also if its name begins like ours.
fn trace_instances_in(folder: &Path, name: &str) -> Result<(), String> {
    if !name.starts_with(TRACE_PREFIX) || name.len() == TRACE_PREFIX.len() || name.contains('/') {
        return Err(format!("pagetide gives no instance the name `{name}`"));
    }
    if !name.ends_with('-') {
        return trace_instance(&folder.join(name));
    }
    let entries = fs::read_dir(folder).map_err(|why| why.to_string())?;
    let is_ours = |entry: &fs::DirEntry| {
        let file = entry.file_name();
        let number = file.to_str().and_then(|file| file.strip_prefix(name));
        number.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_digit()))
    };
    let removed = entries
        .flatten()
        .filter(is_ours)
        .map(|entry| trace_instance(&entry.path()));
    // All of them are tried, even if one cannot be removed.
    removed.fold(Ok(()), Result::and)
}

fn trace_instance(path: &Path) -> Result<(), String> {
    let began = Instant::now();
    loop {
        match gone(fs::remove_dir(path)) {
            Ok(()) => return Ok(()),
            // Files of a killed process may still be open.
            Err(_) if began.elapsed() < Duration::from_secs(2) => sleep(PAUSE),
            Err(why) => return Err(why.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_instances_of_the_named_process_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let others = [
            "pagetide-12-3456-0",
            "pagetide-12-345",
            "pagetide-12-345-",
            "pagetide-12-345-1-of-a-user",
            "pagetide-12-345-mine",
            "pagetide-112-345-0",
            "x",
        ];
        for name in others
            .iter()
            .chain(&["pagetide-12-345-0", "pagetide-12-345-17"])
        {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let left = || {
            let entries = fs::read_dir(folder.path()).unwrap().flatten();
            let mut names: Vec<String> = entries
                .map(|entry| entry.file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        trace_instances_in(folder.path(), "pagetide-12-345-").unwrap();
        let mut expected = others.map(str::to_owned);
        expected.sort();
        assert_eq!(left(), expected);
        // Names that a damaged journal may contain.
        for name in [
            "",
            "-",
            "x",
            "x-",
            "pagetide-",
            "pagetide-/../x",
            "pagetide-1-2-/../x",
        ] {
            trace_instances_in(folder.path(), name).unwrap_err();
        }
        assert_eq!(left(), expected);
        trace_instances_in(folder.path(), "pagetide-12-345").unwrap();
        assert_eq!(left().len(), expected.len() - 1);
    }
}
