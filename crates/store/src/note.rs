//! The file that describes a campaign: its trials, each with variant and cell.
//!
//! A record may belong to several campaigns, because a trial that has a record is not run again. So `campaigns/ID.json`
//! lists the trials of the campaign. The file is written before the trials run, and again when trials are added.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use pagetide_outside::{FileOrigin, lock_file, readable_json};
use pagetide_quantity::Nanos;
use pagetide_record::ArenaKind;
use pagetide_record::subject::hex;
use sha2::{Digest, Sha256};

use crate::error::{StoreError, at};

/// Maximum number of variants in a campaign. Each is compared with the first in a separate column.
pub const MAX_VARIANTS: usize = 1_000;
/// Maximum size of a campaign's file in bytes. A trial takes about 100 bytes.
pub const MAX_NOTE_BYTES: u64 = 512 << 20;
/// Maximum number of bytes read from a lock file, which contains a process id.
const MAX_LOCK_BYTES: u64 = 32;

/// The file of a campaign (its *note*): its trials, cells and variants, and how they are evaluated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CampaignNote {
    /// Name of the campaign.
    pub name: String,
    /// Number of the run: 1 for the first with this name, increased whenever all of the campaign's trials are run again
    /// (`--fresh`) or results are imported under the same name.
    pub generation: u32,
    /// True if all trials were run again for this run, so that earlier records do not count.
    #[serde(default)]
    pub fresh: bool,
    /// Command line of the last run, quoted for a shell; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Time at which this run first started, in nanoseconds since 1970.
    pub started: Nanos,
    /// Kind of arena in which the campaign's trials run.
    pub arena: ArenaKind,
    /// Names of the variants; the first is the baseline.
    pub variants: Vec<String>,
    /// Cells of the campaign, each with label and rules of evaluation.
    pub cells: Vec<CellNote>,
    /// Trials of the campaign, in the order in which they were planned.
    pub entries: Vec<Entry>,
    /// Numbers of sampling units after which sequential sampling evaluates the results; empty for a fixed number of
    /// trials.
    #[serde(default)]
    pub looks: Vec<u64>,
    /// Accepted differences between variants besides the intended ones: kinds such as `huge-pages`, or names of
    /// settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<String>,
    /// How trials are paired, for imported trials; `None` if the trials were not imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Pairing>,
}

/// How imported trials are paired. Trials of different variants with equal units form a pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    /// The quantity by which trials of different variants are paired, such as `seed`; `None` if they are not paired.
    pub paired_by: Option<String>,
    /// True if trials of different runs can be paired too. This holds for pairs by seed, not for pairs by iteration
    /// number.
    pub lasting: bool,
    /// True if the user stated that trials of the variants alternated. If false, this is derived from the trials' start
    /// times, if known.
    pub interleaved: bool,
    /// Why the first variant is the baseline, such as "the first by time".
    pub baseline: String,
}

/// How a cell of a campaign is evaluated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellNote {
    /// Short label of the cell for display.
    pub label: String,
    /// Names of the primary metrics of the cell; `None` for those of the scenario.
    pub primary: Option<Vec<String>>,
    /// Equivalence margin of each metric, as a fraction of the baseline.
    pub margins: BTreeMap<String, f64>,
}

/// One trial of a campaign, with its cell, variant, unit and repetition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Key of the trial ([`pagetide_record::Subject::key`]): a hash of everything that determines its results.
    pub key: String,
    /// Index of the cell in [`CampaignNote::cells`].
    pub cell: usize,
    /// Index of the variant in [`CampaignNote::variants`].
    pub variant: usize,
    /// Number of the sampling unit within the cell, the same for all variants. In an arena with noise a unit is a boot
    /// or a session with repetitions; in the exact arena, a trial.
    pub unit: u32,
    /// Number of the repetition within the sampling unit.
    pub repetition: u32,
}

impl CampaignNote {
    /// Returns the ID of this run of the campaign: `NAME` for the first, then `NAME.2` and so on.
    pub fn id(&self) -> String {
        if self.generation <= 1 {
            self.name.clone()
        } else {
            format!("{}.{}", self.name, self.generation)
        }
    }
}

/// True if `name` is a valid campaign name: at most 100 ASCII letters, digits, `-` and `_`, of which the first is a
/// letter or digit. The name becomes a file name, and part of `NAME:VARIANT` and `NAME.2` on command lines.
pub fn is_campaign_name(name: &str) -> bool {
    let first = name
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric());
    first
        && name.len() <= 100
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// An exclusive lock on a campaign's name, so that only one process runs the campaign. Released on drop, and by the
/// kernel when the process dies.
#[derive(Debug)]
pub struct CampaignLock {
    path: PathBuf,
    _file: fs::File,
}

impl Drop for CampaignLock {
    fn drop(&mut self) {
        // The file is removed while the lock is held. A process that opened it in the meantime sees that it is gone,
        // and creates a new one.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the process ID in a lock file, as text; empty if the file is empty or cannot be read.
pub(crate) fn said(lock: &fs::File) -> String {
    let mut text = String::new();
    // If the file cannot be read as text, the result is empty.
    let _ = lock.take(MAX_LOCK_BYTES).read_to_string(&mut text);
    text.trim().to_owned()
}

/// Deletes the lock files of processes that were killed.
pub(crate) fn drop_stale_locks(folder: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).map_err(at("reading", folder))? {
        let path = entry.map_err(at("reading", folder))?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        if let (Some(name), Some("lock")) = (name, path.extension().and_then(|e| e.to_str())) {
            // Taking and dropping a free lock removes its file. A lock that is held is left alone.
            drop(lock(folder, name));
        }
    }
    Ok(())
}

/// Locks a campaign's name. Fails with [`StoreError::Running`] if the lock is still held after 50 ms.
pub(crate) fn lock(folder: &Path, name: &str) -> Result<CampaignLock, StoreError> {
    use rustix::fs::{FlockOperation, flock};
    let path = folder.join(format!("{name}.lock"));
    // Another process may hold the lock for a moment, to check whether the holder has died.
    let mut patience = 5;
    loop {
        let mut file = lock_file(&path).map_err(at("creating", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) if patience > 0 => {
                patience -= 1;
                std::thread::sleep(std::time::Duration::from_millis(10));
                continue;
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StoreError::Running {
                    name: name.to_owned(),
                    process: said(&file),
                });
            }
            Err(error) => return Err(at("locking", &path)(error.into())),
        }
        let number = |data: std::io::Result<fs::Metadata>| data.map(|d| d.ino()).ok();
        if number(file.metadata()) == number(fs::symlink_metadata(&path)) {
            // The process ID is only for the message of a second process. The lock itself is held by the kernel.
            let mut tell = || {
                file.rewind()?;
                file.set_len(0)?;
                file.write_all(std::process::id().to_string().as_bytes())
            };
            tell().map_err(at("writing", &path))?;
            return Ok(CampaignLock { path, _file: file });
        }
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// Deletes a campaign's file. No error if the file does not exist.
pub(crate) fn remove(folder: &Path, id: &str) -> Result<(), StoreError> {
    crate::files::remove_if_present(&file(folder, id))
}

/// Writes a campaign's file atomically: a reader sees the old or the new content.
pub(crate) fn write(folder: &Path, note: &CampaignNote) -> Result<(), StoreError> {
    let path = file(folder, &note.id());
    let unreadable = |why: String| StoreError::Unreadable {
        path: path.clone(),
        why,
    };
    let mut json = readable_json(note).map_err(|why| unreadable(why.to_string()))?;
    let check = check(&json);
    // The last member is a checksum of all preceding ones, so that damage is detected.
    json.pop();
    json.extend_from_slice(check.as_bytes());
    if json.len() as u64 > MAX_NOTE_BYTES {
        return Err(unreadable("it is larger than 512 MiB".to_owned()));
    }
    crate::files::replace(&path, &json)
}

/// Returns the end of a campaign's file: the last JSON member, which is a checksum of the JSON without this member, and
/// the closing brace.
fn check(json: &[u8]) -> String {
    format!(r#","check":"{}"}}"#, &hex(&Sha256::digest(json))[..16])
}

/// True if the checksum of a campaign's file is right or missing. Files of earlier versions have no checksum.
fn is_whole(bytes: &[u8]) -> bool {
    let length = check(b"").len();
    let Some(at) = bytes.len().checked_sub(length) else {
        return true;
    };
    let (note, tail) = bytes.split_at(at);
    if !tail.starts_with(br#","check":""#) {
        return true;
    }
    check(&[note, b"}"].concat()).as_bytes() == tail
}

/// Reads a campaign's file; `None` if there is no such file.
pub(crate) fn read(folder: &Path, id: &str) -> Result<Option<CampaignNote>, StoreError> {
    let path = file(folder, id);
    let bytes = match pagetide_outside::read(&path, FileOrigin::Own, MAX_NOTE_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at("reading", &path)(error)),
    };
    let wrong = |why: String| StoreError::Note {
        path: path.clone(),
        why,
    };
    if bytes.is_empty() {
        return Err(wrong("it is empty".to_owned()));
    }
    if !is_whole(&bytes) {
        return Err(wrong("its check differs".to_owned()));
    }
    let note: CampaignNote =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    if note.id() != id {
        return Err(wrong(format!("it speaks of campaign {}", note.id())));
    }
    Ok(Some(note))
}

/// Returns the IDs of all campaigns, the most recently written first.
pub(crate) fn ids(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at("reading", folder)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(at("reading", folder))?;
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        if let Ok(written) = entry.metadata().and_then(|data| data.modified()) {
            found.push((written, id.to_owned()));
        }
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    Ok(found.into_iter().map(|(_, id)| id).collect())
}
