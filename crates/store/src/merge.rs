//! Copies the records and campaigns of other stores into a store.
//!
//! The other stores are only read. Records that the store already has are not copied again. A trial without noise can
//! have only one result. So two valid records of such a trial with different results are a conflict. If there is a
//! conflict, nothing is merged.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pagetide_outside::{FileOrigin, create};
use pagetide_record::{ArenaKind, Record, RecordReader};
use serde::Serialize;

use crate::error::{StoreError, at};
use crate::files::{all_files, check_format, settle};
use crate::note::{self, CampaignNote};
use crate::report::{DamagedFile, shown};
use crate::row;
use crate::store::Store;

/// Maximum number of records that are looked up together, or that are copied, flushed to disk and added to the index
/// together.
const AT_ONCE: usize = 1024;

/// Two valid records of one trial that have different results, although the trial's arena has no noise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Path of the record in this store; if both records are in other stores, of the one that was read first.
    #[serde(serialize_with = "shown")]
    pub here: PathBuf,
    /// Path of the record that contradicts it, in another store.
    #[serde(serialize_with = "shown")]
    pub there: PathBuf,
}

/// Result of merging other stores into a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Merge {
    /// Number of records that were copied; after a dry run, the number that would be copied.
    pub added: u64,
    /// Number of records that were not copied because this store, or another store read before, has the same record.
    pub present: u64,
    /// IDs of the campaigns of other stores, new in this store or with new trials; empty if there is a conflict.
    pub campaigns: Vec<String>,
    /// IDs of the campaigns whose file was not merged, because this store has a different campaign with the same ID.
    pub differing: Vec<String>,
    /// Records and campaign files of the other stores that are damaged, or that changed while they were copied. They
    /// were not copied.
    pub damaged: Vec<DamagedFile>,
    /// Pairs of records that contradict each other. If there is a pair, nothing was merged.
    pub conflicts: Vec<Conflict>,
}

impl Merge {
    /// True if nothing was left out: no damaged file, no conflict and no differing campaign.
    pub fn is_whole(&self) -> bool {
        self.damaged.is_empty() && self.conflicts.is_empty() && self.differing.is_empty()
    }

    /// Returns text for the user. If `is_done` is true it says what was merged, else what would be merged.
    pub fn text(&self, is_done: bool) -> String {
        let mut text = String::new();
        for damaged in &self.damaged {
            let _ = writeln!(
                text,
                "damaged: {} ({}); left out",
                damaged.path.display(),
                damaged.why
            );
        }
        if !self.conflicts.is_empty() {
            let _ = writeln!(
                text,
                "nothing is merged: {} trials have two different results, which trials of this arena never have",
                self.conflicts.len()
            );
            return text;
        }
        let word = if is_done { "merged" } else { "would merge" };
        let _ = writeln!(
            text,
            "{word} {} records; {} were here already",
            self.added, self.present
        );
        if !self.campaigns.is_empty() {
            let _ = writeln!(text, "campaigns: {}", self.campaigns.join(", "));
        }
        for id in &self.differing {
            let _ = writeln!(
                text,
                "campaign {id} of this store has other variants or cells: its records were merged, its list of trials was not"
            );
        }
        text
    }
}

/// A record of another store that this store does not have.
struct Found {
    path: PathBuf,
    id: String,
}

/// Everything found in the other stores, before anything is copied.
#[derive(Default)]
struct Survey {
    merge: Merge,
    /// Records that will be copied.
    new: Vec<Found>,
    /// Campaign files that will be written.
    notes: Vec<CampaignNote>,
    /// IDs of the records that will be copied.
    ids: HashSet<String>,
    /// Digest and path of the first valid record of each trial without noise, by the trial's key (a hash of everything
    /// that determines the results).
    results: HashMap<String, (String, PathBuf)>,
}

impl Store {
    /// Copies the records and campaigns of the stores in `folders` into this store; copies nothing if there are
    /// conflicts ([`Merge::conflicts`]). If `dry_run` is true, copies nothing and returns what would be copied.
    ///
    /// # Errors
    /// [`StoreError::NoStore`] if a folder is not a store; [`StoreError::Itself`] if a folder is this store;
    /// [`StoreError::ReadOnly`] if this store cannot be written; errors of reading and writing files. Records that were
    /// copied before an error remain.
    pub fn merge(&mut self, folders: &[PathBuf], dry_run: bool) -> Result<Merge, StoreError> {
        if let Some(why) = self.why_read_only()
            && !dry_run
        {
            let path = self.folder().to_owned();
            return Err(StoreError::ReadOnly { path, why });
        }
        let mut survey = Survey::default();
        for folder in folders {
            self.check_other(folder)?;
            self.survey_records(folder, &mut survey)?;
            self.survey_campaigns(folder, &mut survey)?;
        }
        let mut merge = survey.merge;
        if !merge.conflicts.is_empty() {
            merge.campaigns.clear();
            return Ok(merge);
        }
        merge.added = survey.new.len() as u64;
        if !dry_run {
            for some in survey.new.chunks(AT_ONCE) {
                merge.added -= self.copy(some, &mut merge.damaged)?;
            }
            for note in &survey.notes {
                self.note(note)?;
            }
        }
        Ok(merge)
    }

    /// Fails if `folder` is not a store, is this store, or has a format that this version cannot read.
    fn check_other(&self, folder: &Path) -> Result<(), StoreError> {
        let path = || folder.to_owned();
        if !folder.join("records").is_dir() {
            return Err(StoreError::NoStore { path: path() });
        }
        check_format(folder)?;
        let place = |folder: &Path| fs::metadata(folder).map(|data| (data.dev(), data.ino()));
        let (here, there) = (place(self.folder()), place(folder));
        match (here, there) {
            (Ok(here), Ok(there)) if here == there => Err(StoreError::Itself { path: path() }),
            _ => Ok(()),
        }
    }

    /// Reads the header of each record in `folder`. Lists the new records, and the conflicts with records of the same
    /// trial in this store and the stores read before.
    fn survey_records(&self, folder: &Path, survey: &mut Survey) -> Result<(), StoreError> {
        let files = all_files(folder)?;
        for some in files.chunks(AT_ONCE) {
            let mut heads = Vec::with_capacity(some.len());
            for path in some {
                match RecordReader::open(path).map(RecordReader::into_record) {
                    Ok(record) => heads.push((path, record)),
                    // The other store may be in use. Then a record can be moved while the folder is listed.
                    Err(_) if !path.exists() => {}
                    Err(why) => survey.merge.damaged.push(DamagedFile {
                        path: path.clone(),
                        why: why.to_string(),
                        index: false,
                    }),
                }
            }
            let keys: Vec<String> = heads.iter().map(|(_, head)| head.subject.key()).collect();
            for row in self.by_keys(&keys)? {
                if row.is_valid() && row.cell.subject.arena.kind == ArenaKind::Exact {
                    let path = self.path(&row.id);
                    survey.results.entry(row.key).or_insert((row.digest, path));
                }
            }
            for ((path, head), key) in heads.into_iter().zip(keys) {
                self.survey_record(path, &head, key, survey);
            }
        }
        Ok(())
    }

    fn survey_record(&self, path: &Path, head: &Record, key: String, survey: &mut Survey) {
        let id = head.id();
        if self.path(&id).exists() || survey.ids.contains(&id) {
            survey.merge.present += 1;
            return;
        }
        if head.is_valid() && head.subject.arena.kind == ArenaKind::Exact {
            let found = survey
                .results
                .entry(key)
                .or_insert_with(|| (head.digest.clone(), path.to_owned()));
            if found.0 != head.digest {
                survey.merge.conflicts.push(Conflict {
                    here: found.1.clone(),
                    there: path.to_owned(),
                });
                return;
            }
        }
        survey.ids.insert(id.clone());
        survey.new.push(Found {
            path: path.to_owned(),
            id,
        });
    }

    /// Compares the campaign files in `folder` with those of this store and of the stores read before. Lists the files
    /// to write and the campaigns that cannot be combined.
    fn survey_campaigns(&self, folder: &Path, survey: &mut Survey) -> Result<(), StoreError> {
        let folder = folder.join("campaigns");
        let mut ids = note::ids(&folder)?;
        ids.sort_unstable();
        for id in ids {
            let theirs = match note::read(&folder, &id) {
                Ok(Some(theirs)) => theirs,
                Ok(None) => continue,
                Err(why) => {
                    survey.merge.damaged.push(DamagedFile {
                        path: folder.join(format!("{id}.json")),
                        why: why.to_string(),
                        index: false,
                    });
                    continue;
                }
            };
            let earlier = survey.notes.iter().position(|note| note.id() == id);
            let ours = match earlier {
                Some(at) => Some(survey.notes[at].clone()),
                None => self.campaign(&id)?,
            };
            let merged = match ours {
                None => theirs,
                Some(ours) => match united(ours, theirs) {
                    Union::Same => continue,
                    Union::More(merged) => *merged,
                    Union::Other => {
                        survey.merge.differing.push(id);
                        continue;
                    }
                },
            };
            if let Some(at) = earlier {
                survey.notes[at] = merged;
            } else {
                survey.merge.campaigns.push(id);
                survey.notes.push(merged);
            }
        }
        Ok(())
    }

    /// Copies record files, checks the copies and adds them to the index. Returns the number of records that were not
    /// copied because they are damaged or changed in the meantime.
    fn copy(&mut self, some: &[Found], damaged: &mut Vec<DamagedFile>) -> Result<u64, StoreError> {
        let incoming = self.folder().join("incoming");
        let mut copies: Vec<(PathBuf, PathBuf, Record)> = Vec::with_capacity(some.len());
        let mut left_out = 0;
        for (number, found) in some.iter().enumerate() {
            let part = incoming.join(format!("{}-merge-{number}.part", std::process::id()));
            match copied(&found.path, &part) {
                Ok(record) if record.id() == found.id => {
                    let whole = incoming.join(format!("{}.record", found.id));
                    copies.push((part, whole, record));
                }
                other => {
                    let _ = fs::remove_file(&part);
                    let why = match other {
                        Err(Copy::Write(error)) => {
                            for (part, _, _) in &copies {
                                let _ = fs::remove_file(part);
                            }
                            return Err(error);
                        }
                        Err(Copy::Read(why)) => why,
                        Ok(_) => "it changed while it was copied".to_owned(),
                    };
                    left_out += 1;
                    damaged.push(DamagedFile {
                        path: found.path.clone(),
                        why,
                        index: false,
                    });
                }
            }
        }
        fs::File::open(&incoming)
            .and_then(|folder| Ok(rustix::fs::syncfs(folder)?))
            .map_err(at("writing", &incoming))?;
        for (part, whole, _) in &copies {
            fs::rename(part, whole).map_err(at("writing", whole))?;
        }
        self.transaction(|index| {
            for (_, _, record) in &copies {
                row::insert(index, record)?;
            }
            Ok(())
        })?;
        for (_, whole, record) in &copies {
            settle(self.folder(), whole, &record.id())?;
        }
        Ok(left_out)
    }
}

/// Reason why a record was not copied.
enum Copy {
    /// The record cannot be opened, or its copy is damaged. Contains the reason.
    Read(String),
    /// The copy cannot be written, or the record cannot be read to its end.
    Write(StoreError),
}

/// Copies a record file to the path `part`, then reads and checks the complete copy.
fn copied(from: &Path, part: &Path) -> Result<Record, Copy> {
    let read = |why: io::Error| Copy::Read(why.to_string());
    let mut source = pagetide_outside::open(from, FileOrigin::Own).map_err(read)?;
    let write = |why: io::Error| Copy::Write(at("writing", part)(why));
    let mut target = create(part).map_err(write)?;
    io::copy(&mut source, &mut target).map_err(write)?;
    drop(target);
    let reader = RecordReader::open(part).map_err(|why| Copy::Read(why.to_string()))?;
    reader.verify().map_err(|why| Copy::Read(why.to_string()))?;
    Ok(reader.into_record())
}

/// Result of combining this store's file of a campaign with another store's file of the same campaign.
enum Union {
    /// This store's file already has all trials of the other file.
    Same,
    /// This store's file, with the trials added that only the other file had.
    More(Box<CampaignNote>),
    /// The files cannot be combined: they differ in variants, cells, arena, pairing, or in whether all trials were run
    /// again.
    Other,
}

/// Combines two notes on one campaign: adds the trials to `ours` that only `theirs` has. Trials are equal if key, cell,
/// variant, unit and repetition are equal.
fn united(mut ours: CampaignNote, theirs: CampaignNote) -> Union {
    let is_same = ours.variants == theirs.variants
        && ours.cells == theirs.cells
        && ours.arena == theirs.arena
        && ours.fresh == theirs.fresh
        && ours.imported == theirs.imported;
    if !is_same {
        return Union::Other;
    }
    let place = |entry: &note::Entry| {
        let number = (entry.cell, entry.variant, entry.unit, entry.repetition);
        (entry.key.clone(), number)
    };
    let known: HashSet<_> = ours.entries.iter().map(place).collect();
    let more = theirs.entries.into_iter();
    let more: Vec<_> = more
        .filter(|entry| !known.contains(&place(entry)))
        .collect();
    if more.is_empty() {
        return Union::Same;
    }
    ours.entries.extend(more);
    if ours.looks.is_empty() {
        ours.looks = theirs.looks;
    }
    Union::More(Box::new(ours))
}
