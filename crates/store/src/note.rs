//! What the store keeps of a campaign: which trials belong to it, under which variant and cell.
//!
//! A record may serve several campaigns, for a trial that was run once is not run again. So the campaign's own file
//! `campaigns/ID.json` says which trials it consists of; it is written before they run and again when sampling adds
//! some.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use pagetide_quantity::Nanos;
use pagetide_record::ArenaKind;
use pagetide_record::subject::hex;
use sha2::{Digest, Sha256};

use crate::error::{StoreError, at};

/// A campaign as the store remembers it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CampaignNote {
    /// Name.
    pub name: String,
    /// 1 for the first run of that name, one more each time it was run afresh.
    pub generation: u32,
    /// Whether it was run afresh: only records of its own count for it, not those made before.
    #[serde(default)]
    pub fresh: bool,
    /// The command line that ran it last, for a shell; empty where it was not kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// First start, nanoseconds since 1970.
    pub started: Nanos,
    /// Where its trials run.
    pub arena: ArenaKind,
    /// Names of the variants; the first is the baseline.
    pub variants: Vec<String>,
    /// The cells.
    pub cells: Vec<CellNote>,
    /// Its trials, in the order they were planned.
    pub entries: Vec<Entry>,
    /// Numbers of sampling units at which it looks at its results, where it samples until it is sure; else empty.
    #[serde(default)]
    pub looks: Vec<u64>,
    /// What may differ between its variants beside what it asks for: kinds such as `huge-pages`, or names of settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<String>,
    /// How its trials belong together, where they were recorded by others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Pairing>,
}

/// How trials that were recorded by others belong together. Their units are equal where they make a pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    /// What pairs trials of different variants, such as `seed`; `None` where nothing does.
    pub paired_by: Option<String>,
    /// Whether that makes pairs of trials recorded apart as well: a seed does, the number of an iteration does not.
    pub lasting: bool,
    /// Whether the user said that the variants took turns. Otherwise the starts of the trials tell, where they are known.
    pub interleaved: bool,
    /// Why the first variant is the baseline, such as "the first by time".
    pub baseline: String,
}

/// How a campaign judges a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellNote {
    /// A short human label.
    pub label: String,
    /// Metrics that decide, where they are not the scenario's own primary ones.
    pub primary: Option<Vec<String>>,
    /// Equivalence margins by metric, as a share of the baseline.
    pub margins: BTreeMap<String, f64>,
}

/// A trial's part in a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Identity of the trial.
    pub key: String,
    /// Which cell, by its place in the note.
    pub cell: usize,
    /// Which variant, by its place in the note.
    pub variant: usize,
    /// Sampling unit within cell and variant.
    pub unit: u32,
    /// Repetition within the unit.
    pub repetition: u32,
}

impl CampaignNote {
    /// Identity of this run of the campaign: `NAME`, or `NAME.2` and so on once it was run afresh.
    pub fn id(&self) -> String {
        if self.generation <= 1 {
            self.name.clone()
        } else {
            format!("{}.{}", self.name, self.generation)
        }
    }
}

/// Whether a text may be a campaign's name: it becomes a file name, and `NAME:VARIANT` and `NAME.2` on command lines.
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

/// Keeps other processes from running the same campaign; released on drop, and by the kernel when the process dies.
#[derive(Debug)]
pub struct CampaignLock {
    path: PathBuf,
    _file: std::fs::File,
}

impl Drop for CampaignLock {
    fn drop(&mut self) {
        // Removed while still held: whoever opened it meanwhile sees that it is gone and makes a new one.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes locks that nobody holds any more: their holders were killed.
pub(crate) fn drop_stale_locks(folder: &Path) -> Result<(), StoreError> {
    for entry in std::fs::read_dir(folder).map_err(at("reading", folder))? {
        let path = entry.map_err(at("reading", folder))?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        if let (Some(name), Some("lock")) = (name, path.extension().and_then(|e| e.to_str())) {
            // Taking the lock and letting it go removes it; who holds it keeps it.
            drop(lock(folder, name));
        }
    }
    Ok(())
}

/// Takes the lock of a campaign's name.
pub(crate) fn lock(folder: &Path, name: &str) -> Result<CampaignLock, StoreError> {
    use rustix::fs::{FlockOperation, flock};
    let path = folder.join(format!("{name}.lock"));
    // Somebody may hold it for a moment only, to see whether its holder is gone.
    let mut patience = 5;
    loop {
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(at("creating", &path))?;
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
                    process: std::fs::read_to_string(&path).unwrap_or_default(),
                });
            }
            Err(error) => return Err(at("locking", &path)(error.into())),
        }
        let number = |data: std::io::Result<std::fs::Metadata>| data.map(|d| d.ino()).ok();
        if number(file.metadata()) == number(std::fs::metadata(&path)) {
            // For the message of whoever comes second; the lock itself is the kernel's.
            std::fs::write(&path, std::process::id().to_string()).map_err(at("writing", &path))?;
            return Ok(CampaignLock { path, _file: file });
        }
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// Takes a note away.
pub(crate) fn remove(folder: &Path, id: &str) -> Result<(), StoreError> {
    crate::store::take_away(&file(folder, id))
}

/// Writes a note so that a reader sees the old one or the new one, never half of one.
pub(crate) fn write(folder: &Path, note: &CampaignNote) -> Result<(), StoreError> {
    let path = file(folder, &note.id());
    let mut json = serde_json::to_vec(note).unwrap_or_default();
    let check = check(&json);
    // The last member is the check of all that stands before it, so that rot is told from a note.
    json.pop();
    json.extend_from_slice(check.as_bytes());
    crate::store::replace(&path, &json)
}

/// The member that ends a note: a check over the note without it.
fn check(json: &[u8]) -> String {
    format!(r#","check":"{}"}}"#, &hex(&Sha256::digest(json))[..16])
}

/// Whether a note is what was written. Notes of before there was a check have none.
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

/// Reads a note; `None` where there is none.
pub(crate) fn read(folder: &Path, id: &str) -> Result<Option<CampaignNote>, StoreError> {
    let path = file(folder, id);
    let bytes = match std::fs::read(&path) {
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

/// Identities of all campaigns, the one that was last written first.
pub(crate) fn ids(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(folder) {
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
