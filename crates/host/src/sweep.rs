//! Undoes the changes that earlier runs left behind because the tool and its guardian were both killed, or because
//! power was cut.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::change::{Change, Left};
use crate::error::HostError;
use crate::journal::{Content, Header, Journal, Unusable};
use crate::process::{self, Process};
use crate::state::StateFolder;

/// Maximum wait for a guardian that is undoing changes.
const GUARDIAN_PATIENCE: Duration = Duration::from_mins(1);
/// Polling interval while waiting for a guardian.
const PAUSE: Duration = Duration::from_millis(50);

/// Result of a sweep.
#[derive(Debug, Default)]
pub struct Swept {
    /// Changes of earlier runs that were undone.
    pub undone: Vec<Change>,
    /// Changes of earlier runs that could not be undone.
    pub left: Vec<Left>,
    /// Journals that were not touched, each with the reason.
    pub untouched: Vec<(PathBuf, String)>,
}

/// Undoes the changes of all journals whose tool and guardian are gone. Waits for guardians that are undoing changes.
/// Other processes that start a session wait until the sweep has ended.
pub fn sweep(folder: &StateFolder) -> Result<Swept, HostError> {
    let lock = folder.lock()?;
    Ok(locked(folder, &lock))
}

/// Does the same as [`sweep`]; the caller must hold the folder's lock.
pub(crate) fn locked(folder: &StateFolder, _lock: &File) -> Swept {
    let mut swept = Swept::default();
    for path in folder.journals() {
        if let Err(why) = one(&path, &mut swept) {
            swept.untouched.push((path, why));
        }
    }
    // A tool that was killed while it rewrote its journal left the new file. It is removed only if the journal is gone,
    // because otherwise a running tool may be writing it.
    let entries = fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let new = entries.map(|entry| entry.path());
    for path in new.filter(|path| path.extension().is_some_and(|end| end == "new")) {
        if !path.with_extension("journal").exists() {
            let _ = fs::remove_file(path);
        }
    }
    swept
}

/// Returns true if a process named in a journal is still running.
fn lives(header: &Header, process: Process) -> bool {
    header.boot == process::boot() && process.is_alive()
}

/// Undoes the changes of one journal and adds them to `swept`. The error says why the journal was not touched.
fn one(path: &Path, swept: &mut Swept) -> Result<(), String> {
    let content = match Content::read(path) {
        Ok(content) => content,
        // The journal ends before its first change, so there is nothing to undo.
        Err(Unusable::Empty) => {
            let _ = fs::remove_file(path);
            return Ok(());
        }
        Err(Unusable::Io(why)) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(why.to_string()),
    };
    let header = content.header.clone();
    let is_this_boot = header.boot == process::boot();
    if is_this_boot && header.namespace != process::namespace() {
        return Err("it belongs to another container of this machine".to_owned());
    }
    if lives(&header, header.tool) {
        // The journal belongs to another campaign that runs now, and is left alone.
        return Ok(());
    }
    let began = Instant::now();
    while content
        .guardian
        .is_some_and(|guardian| lives(&header, guardian))
    {
        if began.elapsed() >= GUARDIAN_PATIENCE {
            return Err("its guardian is still at work".to_owned());
        }
        sleep(PAUSE);
    }
    let Ok(mut content) = Content::read(path) else {
        // The guardian has undone everything.
        return Ok(());
    };
    if !is_this_boot {
        content
            .standing
            .retain(|(_, change)| change.survives_boot());
    }
    let before: Vec<Change> = content
        .standing
        .iter()
        .map(|(_, change)| change.clone())
        .collect();
    let journal = Journal::take_over(path, content).map_err(|why| why.to_string())?;
    let left = journal.undo_all();
    let is_left = |change: &Change| left.iter().any(|left| left.change == *change);
    swept
        .undone
        .extend(before.into_iter().filter(|change| !is_left(change)));
    swept.left.extend(left);
    Ok(())
}
