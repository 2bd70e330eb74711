//! The journal: every global change is on disk before it is made, so that it can be undone however the tool ends.
//!
//! A journal is a file of lines. The first line identifies the format, the boot of the machine and the process. Each
//! other line adds a change, says that a change is undone, or names the guardian. A line is synced to disk before the
//! change is made, and after it is undone. So an incomplete last line can be ignored: its change was never made, or is
//! undone a second time, which does no harm. The file is removed when nothing is left to undo.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::change::{Change, Left};
use crate::error::{HostError, io};
use crate::process::{self, Process};
use crate::state::StateFolder;
use crate::undo;

/// Version of the format. A journal with another version is not touched.
pub const VERSION: u32 = 1;
/// Maximum number of changes in a journal that have not been undone.
const MAX_ENTRIES: usize = 10_000;
/// File size in bytes above which the journal is rewritten with only the changes that have not been undone.
const REWRITE_FROM: u64 = 256 << 10;
/// Maximum size of a journal in bytes.
const LARGEST: u64 = 16 << 20;

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the format.
    pub version: u32,
    /// Boot ID of the boot in which the changes were made.
    pub boot: String,
    /// PID namespace in which the PIDs are valid.
    pub namespace: String,
    /// The process that makes the changes.
    pub tool: Process,
}

/// Any line of a journal except the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// A change that is about to be made.
    Change(u64, Change),
    /// The change with this number was undone, or was not made.
    Undone(u64),
    /// The process that undoes the changes if the tool is gone.
    Guardian(Process),
}

/// The part of the first line that is common to all versions of the format.
#[derive(Deserialize)]
struct Format {
    version: u32,
}

/// Content of a journal file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The first line.
    pub header: Header,
    /// Process that undoes the changes if the tool is gone; `None` if none was started.
    pub guardian: Option<Process>,
    /// Changes that have not been undone, each with its number, in the order in which they were made.
    pub standing: Vec<(u64, Change)>,
}

/// Reasons why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The file has no complete line, or only one, which states no version. This means that no change was made.
    #[error("it has no first line")]
    Empty,
    /// The file has another version of the format.
    #[error("it was written by another version of pagetide (format {0}): start that version once")]
    Version(u32),
    /// The first line, or a line before the last, cannot be parsed; or the file is too large (line 0).
    #[error("line {0} is damaged: undo by hand what the other lines name, then remove the file")]
    Damaged(usize),
    /// The file cannot be read.
    #[error("it cannot be read ({0})")]
    Io(#[from] std::io::Error),
}

impl Content {
    /// Reads a journal.
    pub fn read(path: &Path) -> Result<Self, Unusable> {
        if fs::symlink_metadata(path)?.len() > LARGEST {
            return Err(Unusable::Damaged(0));
        }
        Self::parse(&fs::read(path)?)
    }

    /// Parses the text of a journal. Ignores a last line that has no newline or cannot be parsed, because its change
    /// was not made, or may be undone again.
    pub fn parse(text: &[u8]) -> Result<Self, Unusable> {
        // After a power cut, blocks at the end of the file may read as zeros.
        let whole = text
            .iter()
            .rposition(|&byte| byte == b'\n')
            .ok_or(Unusable::Empty)?;
        let mut lines = text[..whole]
            .split(|&byte| byte == b'\n')
            .enumerate()
            .peekable();
        let (_, first) = lines.next().ok_or(Unusable::Empty)?;
        // Without a further line there is no change. With one, nothing may be undone by guess.
        let format: Format = serde_json::from_slice(first).map_err(|_| match lines.peek() {
            None => Unusable::Empty,
            Some(_) => Unusable::Damaged(1),
        })?;
        if format.version != VERSION {
            return Err(Unusable::Version(format.version));
        }
        let header = serde_json::from_slice(first).map_err(|_| Unusable::Damaged(1))?;
        let mut content = Self {
            header,
            guardian: None,
            standing: Vec::new(),
        };
        while let Some((at, line)) = lines.next() {
            match serde_json::from_slice(line) {
                Ok(Line::Change(number, change)) => content.standing.push((number, change)),
                Ok(Line::Undone(number)) => content.standing.retain(|(other, _)| *other != number),
                Ok(Line::Guardian(process)) => content.guardian = Some(process),
                Err(_) if lines.peek().is_none() => {}
                Err(_) => return Err(Unusable::Damaged(at + 1)),
            }
        }
        Ok(content)
    }

    /// Returns the text of a journal with this content.
    fn text(&self) -> Vec<u8> {
        let mut text = json(&self.header);
        if let Some(process) = self.guardian {
            text.extend(json(&Line::Guardian(process)));
        }
        for (number, change) in &self.standing {
            text.extend(json(&Line::Change(*number, change.clone())));
        }
        text
    }
}

/// Returns a value as a line of JSON.
fn json(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Number of a change in its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the change is undone by this number"]
pub struct Entry(u64);

#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    next: u64,
    content: Content,
}

/// An open journal. Clones share the file and its content.
#[derive(Clone, Debug)]
pub struct Journal {
    open: Arc<Mutex<Open>>,
}

/// Number of journals that this process has created, used to give each a unique name.
static COUNT: AtomicU32 = AtomicU32::new(0);

impl Journal {
    /// Creates a journal of this process. Nothing may be changed before [`crate::sweep()`] has run.
    pub fn create(folder: &StateFolder) -> Result<Self, HostError> {
        folder.make()?;
        let tool = Process::current();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{count}.journal", tool.pid, tool.start);
        let path = folder.path().join(name);
        let header = Header {
            version: VERSION,
            boot: process::boot(),
            namespace: process::namespace(),
            tool,
        };
        let content = Content {
            header,
            guardian: None,
            standing: Vec::new(),
        };
        let file = write_new(&path, &content)?;
        Ok(Self::of(path, file, content))
    }

    /// Opens the journal of another process, to undo its changes.
    pub fn take_over(path: &Path, content: Content) -> Result<Self, HostError> {
        let file = File::options().append(true).open(path);
        let file = file.map_err(io("opening the journal", path.display().to_string()))?;
        Ok(Self::of(path.to_owned(), file, content))
    }

    fn of(path: PathBuf, file: File, content: Content) -> Self {
        let next = content.standing.iter().map(|(number, _)| number + 1);
        let next = next.max().unwrap_or(0);
        Self {
            open: Arc::new(Mutex::new(Open {
                path,
                file,
                next,
                content,
            })),
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of the journal's file.
    pub fn path(&self) -> PathBuf {
        self.open().path.clone()
    }

    /// Returns the changes that have not been undone, in the order in which they were made.
    pub fn standing(&self) -> Vec<Change> {
        let open = self.open();
        open.content
            .standing
            .iter()
            .map(|(_, change)| change.clone())
            .collect()
    }

    /// Writes to the journal that this change is about to be made, and syncs the journal to disk. The change must not be
    /// made if this fails.
    pub fn record(&self, change: Change) -> Result<Entry, HostError> {
        let mut open = self.open();
        let count = open.content.standing.len();
        if count >= MAX_ENTRIES {
            let path = open.path.clone();
            return Err(HostError::JournalFull { path, count });
        }
        let number = open.next;
        open.write(&Line::Change(number, change.clone()))?;
        open.next += 1;
        open.content.standing.push((number, change));
        Ok(Entry(number))
    }

    /// Writes to the journal which process undoes the changes if the tool is gone.
    pub fn record_guardian(&self, guardian: Process) -> Result<(), HostError> {
        let mut open = self.open();
        open.write(&Line::Guardian(guardian))?;
        open.content.guardian = Some(guardian);
        Ok(())
    }

    /// Records a change and then makes it by calling `make`. If `make` fails, records that the change was not made.
    pub fn make<T>(
        &self,
        change: Change,
        make: impl FnOnce() -> Result<T, HostError>,
    ) -> Result<(Entry, T), HostError> {
        let entry = self.record(change)?;
        match make() {
            Ok(made) => Ok((entry, made)),
            Err(why) => {
                self.withdraw(entry)?;
                Err(why)
            }
        }
    }

    /// Writes to the journal that a change was not made.
    pub fn withdraw(&self, entry: Entry) -> Result<(), HostError> {
        self.open().strike(entry.0)
    }

    /// Undoes these changes, the latest first. Returns those that could not be undone; they stay in the journal.
    pub fn undo(&self, entries: &[Entry]) -> Vec<Left> {
        self.undo_if(|number| entries.contains(&Entry(number)))
    }

    /// Undoes all changes, the latest first. Returns those that could not be undone; they stay in the journal. If none
    /// is left, the file is removed.
    pub fn undo_all(&self) -> Vec<Left> {
        let left = self.undo_if(|_| true);
        if left.is_empty() {
            // If the file cannot be removed, the next start finds no changes in it, and removes it.
            let _ = fs::remove_file(self.path());
        }
        left
    }

    fn undo_if(&self, wanted: impl Fn(u64) -> bool) -> Vec<Left> {
        let chosen: Vec<(u64, Change)> = {
            let open = self.open();
            let all = open.content.standing.iter().rev();
            all.filter(|(number, _)| wanted(*number)).cloned().collect()
        };
        let mut left = Vec::new();
        undo::kill_groups(chosen.iter().map(|(_, change)| change));
        for (number, change) in chosen {
            match undo::undo(&change) {
                Ok(()) => {
                    // If this cannot be written, the change is undone twice, which does no harm.
                    let _ = self.open().strike(number);
                }
                Err(why) => left.push(Left { change, why }),
            }
        }
        left
    }
}

impl Open {
    fn write(&mut self, line: &Line) -> Result<(), HostError> {
        let fault = || io("writing the journal", self.path.display().to_string());
        if self.file.metadata().map_err(fault())?.len() > REWRITE_FROM {
            self.rewrite()?;
        }
        let fault = || io("writing the journal", self.path.display().to_string());
        let before = self.file.metadata().map_err(fault())?.len();
        let written = self
            .file
            .write_all(&json(line))
            .and_then(|()| self.file.sync_data());
        if written.is_err() {
            // A part of a line, from a full disk, must not precede a later line.
            let _ = self.file.set_len(before);
        }
        written.map_err(fault())
    }

    /// Records that the change with this number was undone or not made.
    fn strike(&mut self, number: u64) -> Result<(), HostError> {
        self.content.standing.retain(|(other, _)| *other != number);
        self.write(&Line::Undone(number))
    }

    /// Replaces the file by one with only the changes that have not been undone.
    fn rewrite(&mut self) -> Result<(), HostError> {
        let new = self.path.with_extension("new");
        let _ = fs::remove_file(&new);
        let file = write_new(&new, &self.content)?;
        fs::rename(&new, &self.path).map_err(io("replacing", self.path.display().to_string()))?;
        sync_folder(&self.path)?;
        self.file = file;
        Ok(())
    }
}

/// Creates a journal with this content, and syncs the file and its folder to disk.
fn write_new(path: &Path, content: &Content) -> Result<File, HostError> {
    let fault = || io("writing the journal", path.display().to_string());
    let mut file = File::options()
        .create_new(true)
        .append(true)
        .open(path)
        .map_err(fault())?;
    file.write_all(&content.text())
        .and_then(|()| file.sync_all())
        .map_err(fault())?;
    sync_folder(path)?;
    Ok(file)
}

/// Syncs the folder of a file to disk, so that the file's name is on disk.
fn sync_folder(path: &Path) -> Result<(), HostError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(io("syncing", folder.display().to_string()))
}
