//! Detects proactive reclaim: a kernel that pages out what processes have not used for a while, before memory is short. It
//! reclaims pages of trials too, and puts pages of other processes into the swap that a trial switches on.

use std::fs;
use std::path::{Path, PathBuf};

/// Folder of the monitors that were set up by hand. Source: kernel `Documentation/admin-guide/mm/damon/usage.rst`.
const MONITORS: &str = "sys/kernel/mm/damon/admin/kdamonds";
/// Switch of the monitor that reclaims. Source: kernel `Documentation/admin-guide/mm/damon/reclaim.rst`.
const RECLAIM: &str = "sys/module/damon_reclaim/parameters/enabled";
/// Action of a monitor that pages out what was not accessed.
const PAGE_OUT: &str = "pageout";
/// Start of the names of the monitors' kernel threads.
const THREAD: &str = "kdamond";

/// Proactive reclaim of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proactive {
    /// What reclaims, such as `kdamond 0`, and the path of its switch.
    pub(crate) what: String,
    /// Command that stops it; `None` if it is not known.
    pub(crate) stop: Option<String>,
}

/// Returns the proactive reclaim of this machine; `None` if there is none, or if it cannot be detected. A program that
/// writes to `memory.reclaim` of control groups cannot be.
pub(crate) fn find() -> Option<Proactive> {
    find_in(Path::new("/"))
}

/// Like [`find`], with another folder instead of `/`.
fn find_in(root: &Path) -> Option<Proactive> {
    let read = |path: PathBuf| fs::read_to_string(path).map(|text| text.trim().to_owned());
    if read(root.join(RECLAIM)).is_ok_and(|text| text == "Y") {
        return Some(Proactive {
            what: format!("DAMON_RECLAIM (/{RECLAIM})"),
            stop: Some(format!("echo N > /{RECLAIM}")),
        });
    }
    let mut is_hidden = false;
    for monitor in numbered(&root.join(MONITORS)) {
        let number = monitor.file_name().unwrap_or_default().to_string_lossy();
        match read(monitor.join("state")) {
            Ok(state) if state == "on" => {
                let contexts = numbered(&monitor.join("contexts"));
                let schemes = contexts
                    .iter()
                    .flat_map(|one| numbered(&one.join("schemes")));
                let mut actions = schemes.map(|scheme| read(scheme.join("action")));
                if actions.any(|action| action.is_ok_and(|action| action == PAGE_OUT)) {
                    return Some(Proactive {
                        what: format!("kdamond {number} of DAMON (/{MONITORS}/{number})"),
                        stop: Some(format!("echo off > /{MONITORS}/{number}/state")),
                    });
                }
            }
            Ok(_) => {}
            // Only root may read the state.
            Err(_) => is_hidden = true,
        }
    }
    let threads = || numbered(&root.join("proc"));
    let is_monitor =
        |process: &PathBuf| read(process.join("comm")).is_ok_and(|name| name.starts_with(THREAD));
    (is_hidden && threads().iter().any(is_monitor)).then(|| Proactive {
        what: format!("perhaps DAMON (a thread {THREAD} runs; only root may read what it does)"),
        stop: None,
    })
}

/// Returns the entries of a folder whose names are numbers.
fn numbered(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_number))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_monitors_that_run_and_page_out_are_proactive_reclaim() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(find_in(root), None);
        write(&format!("{MONITORS}/0/state"), "on\n");
        write(&format!("{MONITORS}/nr_kdamonds"), "1\n");
        let action = format!("{MONITORS}/0/contexts/0/schemes/0/action");
        write(&action, "stat\n");
        write("proc/77/comm", "kdamond.0\n");
        assert_eq!(find_in(root), None);
        write(&action, "pageout\n");
        let found = find_in(root).unwrap();
        assert!(found.what.starts_with("kdamond 0"), "{found:?}");
        assert!(found.stop.unwrap().ends_with("kdamonds/0/state"));
        write(&format!("{MONITORS}/0/state"), "off\n");
        assert_eq!(find_in(root), None);
        write(RECLAIM, "Y\n");
        assert!(find_in(root).unwrap().what.starts_with("DAMON_RECLAIM"));
        write(RECLAIM, "N\n");
        // A user sees the thread, but not its state.
        fs::remove_file(root.join(MONITORS).join("0/state")).unwrap();
        assert_eq!(find_in(root).unwrap().stop, None);
    }
}
