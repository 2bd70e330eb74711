//! An open store: writing, adding, finding and loading records.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagetide_outside::{Place, Refusal};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use pagetide_quantity::Metric;
use pagetide_quantity::Nanos;
use pagetide_record::Record;
use pagetide_record::{FileError, RecordReader, RecordWriter};

use crate::error::{StoreError, Trouble, at, index};
use crate::note::{CampaignLock, CampaignNote};
use crate::row::{MetricKey, Row};
use crate::running::RunState;
use crate::select::{Filter, Point};
use crate::{catch_up, many, note, read_only, row, running, schema, select};

/// Version of the store's layout. A store with a later version is refused.
pub const FORMAT: u32 = 1;
/// Maximum size of the file `format` in bytes.
const MOST_FORMAT_BYTES: u64 = 4096;
/// Time that a process waits for another process that is writing the index.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of records that are added in one transaction, so that the disk is flushed once for all of them.
const AT_ONCE: usize = 16_384;
/// Number of records that are in memory at once during verification.
const READ_AT_ONCE: usize = 1024;
/// Number of matching records that a message lists if a prefix is ambiguous.
const SOME: u32 = 4;

/// An open store, for reading and writing records.
pub struct Store {
    root: PathBuf,
    database: PathBuf,
    index: Connection,
    /// Reason why the store can only be read; `None` if it can be written.
    why_read_only: Option<io::ErrorKind>,
}

/// A damaged record file, or a damaged index entry of a record.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DamagedFile {
    /// Path of the damaged file.
    #[serde(serialize_with = "shown")]
    pub path: PathBuf,
    /// The damage, in one sentence.
    pub why: String,
    /// True if the damage is in the index and can be repaired with `rebuild`; the record file is then undamaged.
    pub index: bool,
}

/// Serialises a path as text, with unprintable bytes replaced, because JSON has only Unicode strings.
fn shown<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// The result of rebuilding or verifying a store: number of undamaged records, and damaged files.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StoreReport {
    /// Number of undamaged records.
    pub records: u64,
    /// Damaged files, which are neither moved nor changed.
    pub damaged: Vec<DamagedFile>,
}

impl StoreReport {
    /// Text for the user, one line per finding. `done` is the word for undamaged records, such as "whole".
    pub fn text(&self, done: &str) -> String {
        let mut text = format!("{} records are {done}\n", self.records);
        for damaged in &self.damaged {
            // If only the index is damaged, the record is fine and must not be moved away.
            let remedy = if damaged.index { "" } else { "; move it away" };
            let (path, why) = (damaged.path.display(), &damaged.why);
            let _ = writeln!(text, "damaged: {path} ({why}){remedy}");
        }
        text
    }
}

/// Replaces the content of a file atomically: a reader sees the old or the new content.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    pagetide_outside::replace(path, bytes).map_err(at("writing", path))
}

/// Deletes a file. No error if the file does not exist.
pub(crate) fn take_away(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(at("removing", path)(why)),
        _ => Ok(()),
    }
}

impl Store {
    /// The default folder of the store: `PAGETIDE_STORE`, else `pagetide` below `XDG_DATA_HOME`, else `pagetide` below
    /// `~/.local/share`. Fails with [`StoreError::NoHome`] if none of these variables is set, nor `HOME`.
    pub fn default_folder() -> Result<PathBuf, StoreError> {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(folder) = var("PAGETIDE_STORE") {
            return Ok(folder.into());
        }
        let data = match var("XDG_DATA_HOME") {
            Some(data) => PathBuf::from(data),
            None => PathBuf::from(var("HOME").ok_or(StoreError::NoHome)?).join(".local/share"),
        };
        Ok(data.join("pagetide"))
    }

    /// Opens a store and creates it if needed. Adds or deletes the files that a killed process left, and updates the
    /// index from the record files. A store that cannot be written is opened for reading.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        check_format(root)?;
        let error = match Self::open_to_write(root) {
            Err(error) => error,
            opened => return opened,
        };
        match error.why_read_only() {
            Some(why) if root.join("records").is_dir() => {
                let database = root.join("index.sqlite");
                Ok(Self {
                    index: read_only::connect(root, &database)?,
                    root: root.to_owned(),
                    database,
                    why_read_only: Some(why),
                })
            }
            _ => Err(error),
        }
    }

    fn open_to_write(root: &Path) -> Result<Self, StoreError> {
        for folder in ["", "incoming", "records", "campaigns", "runs"] {
            let folder = root.join(folder);
            std::fs::create_dir_all(&folder).map_err(at("creating", &folder))?;
        }
        let format = root.join("format");
        if !format.exists() {
            replace(&format, format!("{FORMAT}\n").as_bytes())?;
        }
        let database = root.join("index.sqlite");
        let open = |connection| Self {
            root: root.to_owned(),
            index: connection,
            database: database.clone(),
            why_read_only: None,
        };
        let mut store = match connect(&database) {
            Ok(connection) => open(connection),
            Err(StoreError::Index { .. }) => {
                // A damaged index holds only data that the files hold too: rebuild it.
                remove_index(&database)?;
                open(connect(&database)?)
            }
            Err(error) => return Err(error),
        };
        if schema::version(&store.index).map_err(index(&store.database))? != schema::VERSION {
            store.transaction(|index| {
                // Another process may have rebuilt the index in the meantime.
                if schema::version(index)? == schema::VERSION {
                    return Ok(());
                }
                fill(index, root, false)
            })?;
        }
        store.take_in()?;
        store.catch_up()?;
        Ok(store)
    }

    /// Updates the index after record files were added, deleted or copied by hand.
    pub(crate) fn catch_up(&self) -> Result<(), StoreError> {
        let sorted = |trouble| match trouble {
            Trouble::Index(error) => index(&self.database)(error),
            Trouble::Store(error) => error,
        };
        let folders = catch_up::folders(&self.index, &self.root).map_err(sorted)?;
        if folders.is_empty() || self.why_read_only.is_some() {
            return Ok(());
        }
        let bring = || -> Result<(), Trouble> {
            let transaction =
                Transaction::new_unchecked(&self.index, TransactionBehavior::Immediate)?;
            catch_up::bring(&transaction, &self.root, &folders, |id| {
                self.path(id).exists()
            })?;
            Ok(transaction.commit()?)
        };
        bring().map_err(sorted)
    }

    /// Path of the store's folder.
    pub fn folder(&self) -> &Path {
        &self.root
    }

    /// Starts a record in this store. Needs no lock and may be used in any thread; see [`Store::admit`].
    pub fn writer(&self) -> Result<RecordWriter, StoreError> {
        RecordWriter::create(&self.root.join("incoming")).map_err(StoreError::writing)
    }

    /// Completes a record and adds it to the store. Returns the path of the record file.
    pub fn add(
        &mut self,
        writer: RecordWriter,
        record: &mut Record,
    ) -> Result<PathBuf, StoreError> {
        let path = writer.finish(record).map_err(StoreError::writing)?;
        self.admit(&path, record)
    }

    /// Adds many records without bulk sections. [`AT_ONCE`] records at a time are added in one transaction and flushed
    /// to disk together.
    pub fn add_all(&mut self, records: &mut [Record]) -> Result<(), StoreError> {
        let incoming = self.root.join("incoming");
        for some in records.chunks_mut(AT_ONCE) {
            let written = many::write(&incoming, some)?;
            std::fs::File::open(&incoming)
                .and_then(|folder| Ok(rustix::fs::syncfs(folder)?))
                .map_err(at("writing", &incoming))?;
            self.transaction(|index| {
                for (record, (_, row)) in some.iter().zip(&written) {
                    row::insert_row(index, record, row)?;
                }
                Ok(())
            })?;
            many::settle(&self.root, &written)?;
        }
        Ok(())
    }

    /// Adds a record whose complete file at `path` was written by [`RecordWriter::finish`] in this store's `incoming`.
    /// Returns the final path of the file.
    pub fn admit(&mut self, path: &Path, record: &Record) -> Result<PathBuf, StoreError> {
        self.transaction(|index| Ok(row::insert(index, record)?))?;
        settle(&self.root, path, &record.id())
    }

    /// Rebuilds the index from the record files. All sections of all records are read. Damaged files are listed and
    /// left out.
    pub fn rebuild(&mut self) -> Result<StoreReport, StoreError> {
        if let Some(why) = self.why_read_only {
            return Err(StoreError::ReadOnly {
                path: self.root.clone(),
                why,
            });
        }
        let root = self.root.clone();
        self.transaction(|index| fill(index, &root, true))?;
        self.take_in()?;
        Ok(StoreReport {
            records: self.count(&Filter::default())?,
            damaged: self.damaged()?,
        })
    }

    /// Reads all sections of all records, and compares the records with the index.
    pub fn verify(&self) -> Result<StoreReport, StoreError> {
        self.catch_up()?;
        let mut found = StoreReport {
            records: 0,
            damaged: self.damaged()?,
        };
        let known: HashSet<PathBuf> = found.damaged.iter().map(|file| file.path.clone()).collect();
        let ids = select::all_ids(&self.index).map_err(index(&self.database))?;
        for some in ids.chunks(READ_AT_ONCE) {
            let root = self.root.as_path();
            let records = many::records(some, |id| {
                let reader = RecordReader::open(&path(root, id))?;
                reader.verify()?;
                Ok(reader.into_record())
            });
            let disagrees = self.disagreements(some, &records)?;
            for (id, record) in some.iter().zip(records) {
                let why = match record {
                    Err(why) => why,
                    Ok(_) if disagrees.contains(id.as_str()) => StoreError::Disagrees {
                        path: self.database.clone(),
                        id: id.clone(),
                    },
                    Ok(_) => {
                        found.records += 1;
                        continue;
                    }
                };
                let file = self.path(id);
                if known.contains(&file) {
                    continue;
                }
                let index = matches!(why, StoreError::Disagrees { .. });
                found.damaged.push(DamagedFile {
                    path: if index { self.database.clone() } else { file },
                    why: why.to_string(),
                    index,
                });
            }
        }
        Ok(found)
    }

    /// Returns those of the given identities whose index rows or metrics differ from the record file.
    fn disagreements<'a>(
        &self,
        ids: &'a [String],
        records: &[Result<Record, StoreError>],
    ) -> Result<HashSet<&'a str>, StoreError> {
        let mut wrong = HashSet::new();
        let mut rows: BTreeMap<&str, Vec<(&'a str, i64, &Record)>> = BTreeMap::new();
        for (id, record) in ids.iter().zip(records) {
            let Ok(record) = record else {
                continue;
            };
            let found = select::by_prefix(&self.index, id, 1).map_err(index(&self.database));
            let row = match found {
                Ok(mut found) => found.pop(),
                Err(StoreError::Disagrees { .. } | StoreError::Index { .. }) => None,
                Err(error) => return Err(error),
            };
            let of_record = |row: i64| Row {
                row,
                ..Row::of(record)
            };
            match row {
                Some(row) if row == of_record(row.row) => {
                    let of_scenario = rows.entry(&record.subject.scenario).or_default();
                    of_scenario.push((id, row.row, record));
                }
                _ => {
                    wrong.insert(id.as_str());
                }
            }
        }
        for (scenario, rows) in rows {
            // All together; one by one only to tell which is wrong.
            if self.has_metrics_of(scenario, &rows) {
                continue;
            }
            for row in rows {
                if !self.has_metrics_of(scenario, &[row]) {
                    wrong.insert(row.0);
                }
            }
        }
        Ok(wrong)
    }

    /// True if the metrics of these rows in the index are exactly the metrics of these records.
    fn has_metrics_of(&self, scenario: &str, rows: &[(&str, i64, &Record)]) -> bool {
        let numbers: Vec<i64> = rows.iter().map(|(_, row, _)| *row).collect();
        let Ok(kept) = self.metrics(scenario, &numbers) else {
            return false;
        };
        let kept: HashMap<(i64, MetricKey<'_>), &Metric> = kept
            .iter()
            .map(|(row, metric)| ((*row, row::key(metric)), metric))
            .collect();
        let mut count = 0;
        for (_, row, record) in rows {
            for metric in row::kept_metrics(record) {
                count += 1;
                let found = kept.get(&(*row, row::key(metric)));
                if !found.is_some_and(|kept| same(kept, metric)) {
                    return false;
                }
            }
        }
        count == kept.len()
    }

    /// Damaged files found earlier that still exist.
    pub fn damaged(&self) -> Result<Vec<DamagedFile>, StoreError> {
        let damaged = || -> rusqlite::Result<Vec<DamagedFile>> {
            self.index
                .prepare_cached("SELECT path, why FROM damaged ORDER BY path")?
                .query_map([], |row| {
                    let within: Vec<u8> = row.get(0)?;
                    Ok(DamagedFile {
                        path: self.root.join(OsStr::from_bytes(&within)),
                        why: row.get(1)?,
                        index: false,
                    })
                })?
                .collect()
        };
        let mut damaged = damaged().map_err(index(&self.database))?;
        damaged.retain(|file| file.path.exists());
        Ok(damaged)
    }

    /// Records that match the filter, newest first.
    pub fn select(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        select::select(&self.index, filter).map_err(index(&self.database))
    }

    /// Number of records that match the filter, without regard to the filter's limit.
    pub fn count(&self, filter: &Filter) -> Result<u64, StoreError> {
        select::count(&self.index, filter).map_err(index(&self.database))
    }

    /// The record whose identity begins with `prefix`. Fails if no record or several records have this prefix. If the
    /// index has no such record, the folders are checked once more, because the record may have been copied in by hand.
    pub fn find(&self, prefix: &str) -> Result<Row, StoreError> {
        match self.find_known(prefix) {
            Err(StoreError::Unknown { .. }) => {
                self.catch_up()?;
                self.find_known(prefix)
            }
            found => found,
        }
    }

    fn find_known(&self, prefix: &str) -> Result<Row, StoreError> {
        let prefix = prefix.to_ascii_lowercase();
        let hexadecimal = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_hexdigit());
        let mut found = if hexadecimal {
            select::by_prefix(&self.index, &prefix, SOME).map_err(index(&self.database))?
        } else {
            Vec::new()
        };
        match found.len() {
            0 => Err(StoreError::Unknown { prefix }),
            1 => Ok(found.remove(0)),
            _ => {
                let count =
                    select::count_prefix(&self.index, &prefix).map_err(index(&self.database))?;
                let mut some: Vec<String> = found.iter().map(describe).collect();
                if count > u64::from(SOME) {
                    some.push("…".to_owned());
                }
                Err(StoreError::Ambiguous {
                    prefix,
                    count,
                    some: some.join(", "),
                })
            }
        }
    }

    /// Records of these trials ([`Subject::key`](pagetide_record::Subject::key)), newest first.
    pub fn by_keys(&self, keys: &[String]) -> Result<Vec<Row>, StoreError> {
        select::by_keys(&self.index, keys).map_err(index(&self.database))
    }

    /// Identities of all cells that have records ([`Subject::cell`](pagetide_record::Subject::cell)).
    pub fn cell_hashes(&self) -> Result<HashSet<String>, StoreError> {
        select::cell_hashes(&self.index).map_err(index(&self.database))
    }

    /// Metrics of the given records of one scenario, each with its record's [`Row::row`], ordered by metric.
    pub fn metrics(&self, scenario: &str, rows: &[i64]) -> Result<Vec<(i64, Metric)>, StoreError> {
        select::metrics(&self.index, scenario, rows).map_err(index(&self.database))
    }

    /// Values of a metric in all records that match the filter, oldest first. The filter's limit keeps the newest
    /// records. Invalid records are included unless the filter excludes them.
    pub fn history(&self, metric: &str, filter: &Filter) -> Result<Vec<Point>, StoreError> {
        select::history(&self.index, metric, filter).map_err(index(&self.database))
    }

    /// Median wall-clock time of the newest valid trials of a cell; of its scenario if the cell has none; `None` if the
    /// scenario has none.
    pub fn typical_wall(
        &self,
        cell: Option<&str>,
        scenario: &str,
    ) -> Result<Option<Nanos>, StoreError> {
        select::typical_wall(&self.index, cell, scenario).map_err(index(&self.database))
    }

    /// Current path of a record's file.
    pub fn path(&self, id: &str) -> PathBuf {
        path(&self.root, id)
    }

    /// True if the store can only be read.
    pub fn is_read_only(&self) -> bool {
        self.why_read_only.is_some()
    }

    /// Reason why the store can only be read; `None` if it can be written.
    pub(crate) fn why_read_only(&self) -> Option<io::ErrorKind> {
        self.why_read_only
    }

    /// Opens the file of a record. Fails with [`StoreError::Gone`] if the file was deleted.
    pub fn load(&self, id: &str) -> Result<RecordReader, StoreError> {
        match RecordReader::open(&self.path(id)) {
            Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                // The file was moved in between, or it was deleted.
                let path = self.path(id);
                if path.exists() {
                    return Ok(RecordReader::open(&path)?);
                }
                self.catch_up()?;
                let id = id.to_owned();
                Err(StoreError::Gone { id, path })
            }
            other => Ok(other?),
        }
    }

    /// Writes a campaign's file, replacing an older version.
    pub fn note(&self, note: &CampaignNote) -> Result<(), StoreError> {
        note::write(&self.root.join("campaigns"), note)
    }

    /// Locks a campaign's name, so that no other process runs the campaign until the returned value is dropped. Fails
    /// with [`StoreError::Running`] if another process runs it.
    pub fn lock_campaign(&self, name: &str) -> Result<CampaignLock, StoreError> {
        note::lock(&self.root.join("campaigns"), name)
    }

    /// The file of the campaign with this identity; `None` if there is no such campaign.
    pub fn campaign(&self, id: &str) -> Result<Option<CampaignNote>, StoreError> {
        note::read(&self.root.join("campaigns"), id)
    }

    /// Writes the progress of a campaign's run, replacing older progress.
    pub fn note_run(&self, state: &RunState) -> Result<(), StoreError> {
        running::write(&self.root.join("runs"), state)
    }

    /// Progress of the last run of the campaign with this name; `None` if there is no readable progress file.
    pub fn run_of(&self, name: &str) -> Option<RunState> {
        running::read(&self.root.join("runs"), name)
    }

    /// The id of the process that runs the campaign with this name now; `None` if no process does.
    pub fn runner(&self, name: &str) -> Result<Option<u32>, StoreError> {
        running::holder(&self.root.join("campaigns"), name)
    }

    /// Identities of all campaigns, the most recently run first.
    pub fn campaigns(&self) -> Result<Vec<String>, StoreError> {
        note::ids(&self.root.join("campaigns"))
    }

    /// The file of the latest run of the campaign with this name; `None` if there is no such campaign.
    pub fn latest_of(&self, name: &str) -> Result<Option<CampaignNote>, StoreError> {
        let mut latest = self.campaign(name)?;
        while let Some(note) = &latest {
            let next = CampaignNote {
                name: note.name.clone(),
                generation: note.generation.max(1) + 1,
                ..CampaignNote::default()
            };
            match self.campaign(&next.id())? {
                Some(note) => latest = Some(note),
                None => break,
            }
        }
        Ok(latest)
    }

    fn transaction<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let run = || -> Result<T, Trouble> {
            let transaction = self
                .index
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        run().map_err(|trouble| match trouble {
            Trouble::Index(error) => index(&self.database)(error),
            Trouble::Store(error) => error,
        })
    }

    /// Moves the complete records in `incoming` to their folders and adds them to the index. Removes incomplete files
    /// whose writers no longer run.
    fn take_in(&mut self) -> Result<(), StoreError> {
        for path in entries(&self.root.join("incoming"))? {
            match path.extension().and_then(|e| e.to_str()) {
                Some("record") => self.take(&path)?,
                Some("part") if !has_writer(&path) => {
                    // Another process may be cleaning up at the same time.
                    let _ = std::fs::remove_file(&path);
                }
                _ => {}
            }
        }
        let campaigns = self.root.join("campaigns");
        let mut all = entries(&campaigns)?;
        all.extend(entries(&self.root)?);
        all.extend(entries(&self.root.join("runs"))?);
        for path in all {
            if path.extension().is_some_and(|e| e == "new") && !has_writer(&path) {
                let _ = std::fs::remove_file(&path);
            }
        }
        note::drop_stale_locks(&campaigns)
    }

    fn take(&mut self, path: &Path) -> Result<(), StoreError> {
        if let Ok(reader) = RecordReader::open(path) {
            let record = reader.into_record();
            match self.admit(path, &record) {
                // The writer itself has moved the file in the meantime; that is fine.
                Err(StoreError::Folder { .. }) if !path.exists() => return Ok(()),
                other => return other.map(drop),
            }
        }
        if path.exists() {
            let root = self.root.clone();
            self.transaction(|index| Ok(enter(index, &root, path, false)?))?;
        }
        Ok(())
    }
}

/// Fills an empty index from all record files. If `whole`, all sections of the files are read and checked. The caller
/// must have opened a transaction.
pub(crate) fn fill(index: &Connection, root: &Path, whole: bool) -> Result<(), Trouble> {
    schema::create(index)?;
    for path in all_files(root)? {
        enter(index, root, &path, whole)?;
    }
    Ok(())
}

/// True if two metrics are equal. NaN counts as equal to NaN and to an absent value.
fn same(kept: &Metric, metric: &Metric) -> bool {
    let is_no_number = |m: &Metric| m.value.number().is_none_or(f64::is_nan);
    kept == metric || (is_no_number(kept) && is_no_number(metric))
}

/// Adds a record file to the index, or to the list of damaged files. If `whole`, all sections of the file are read and
/// checked. The caller must have opened a transaction.
pub(crate) fn enter(
    index: &Connection,
    root: &Path,
    path: &Path,
    whole: bool,
) -> rusqlite::Result<()> {
    let read = || -> Result<RecordReader, String> {
        let reader = RecordReader::open(path).map_err(|why| why.to_string())?;
        if whole {
            reader.verify().map_err(|why| why.to_string())?;
        }
        let place = place(root, &reader.record().id());
        if path.starts_with(root.join("records")) && path != place {
            return Err(format!("its place is {}: move it there", place.display()));
        }
        Ok(reader)
    };
    // The folder may be called anything, and may be moved.
    let within = path.strip_prefix(root).unwrap_or(path);
    let within = within.as_os_str().as_bytes();
    match read() {
        Ok(reader) => {
            index
                .prepare_cached("DELETE FROM damaged WHERE path = ?1")?
                .execute([within])?;
            row::insert(index, reader.record())
        }
        // The file was moved to its final path, where it is found too.
        Err(_) if !path.exists() => Ok(()),
        Err(why) => {
            index
                .prepare_cached("INSERT OR REPLACE INTO damaged (path, why) VALUES (?1, ?2)")?
                .execute(params![within, why])?;
            Ok(())
        }
    }
}

/// Moves the file of a record to its final path and returns this path. The index must already contain the record.
pub(crate) fn settle(root: &Path, path: &Path, id: &str) -> Result<PathBuf, StoreError> {
    let place = place(root, id);
    let mut moved = std::fs::rename(path, &place);
    if moved.is_err()
        && let Some(folder) = place.parent()
    {
        // The folder does not exist yet, or another process has moved the file.
        std::fs::create_dir_all(folder).map_err(at("creating", folder))?;
        moved = std::fs::rename(path, &place);
    }
    match moved {
        Ok(()) => Ok(place),
        // Another process has opened the store in the meantime and moved the file.
        Err(_) if place.exists() => Ok(place),
        Err(error) => Err(at("moving a record to", &place)(error)),
    }
}

/// Current path of a record's file: final path, or the path in `incoming` if the file was not moved yet.
fn path(root: &Path, id: &str) -> PathBuf {
    let place = place(root, id);
    if place.exists() {
        return place;
    }
    // In the moment between index and place the record is still where it was written.
    let waiting = root.join("incoming").join(format!("{id}.record"));
    if waiting.exists() { waiting } else { place }
}

/// The final path of a record's file.
fn place(root: &Path, id: &str) -> PathBuf {
    let folder = id.get(..2).unwrap_or("xx");
    root.join("records")
        .join(folder)
        .join(format!("{id}.record"))
}

/// Paths of all complete record files. `incoming` is listed first, so that files moved in the meantime are found at
/// their final path.
fn all_files(root: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = entries(&root.join("incoming"))?;
    for folder in entries(&root.join("records"))? {
        if folder.is_dir() {
            files.extend(entries(&folder)?);
        }
    }
    files.retain(|path| path.extension().is_some_and(|e| e == "record"));
    files.sort_unstable();
    Ok(files)
}

/// Paths of all entries of a folder, unordered.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    std::fs::read_dir(folder)
        .map_err(at("reading", folder))?
        .map(|entry| {
            entry
                .map(|entry| entry.path())
                .map_err(at("reading", folder))
        })
        .collect()
}

/// True if the process that writes a temporary file is still running. The process id is the last number before the
/// extension, or else the first number in the file name: `quick.PID.new`, `PID-….part`.
fn has_writer(file: &Path) -> bool {
    let stem = file
        .file_stem()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
    let pid = number(stem.rsplit('.').next()).or_else(|| number(stem.split('-').next()));
    pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

/// Fails if the store has a later format.
fn check_format(root: &Path) -> Result<(), StoreError> {
    let path = root.join("format");
    match pagetide_outside::read_text(&path, Place::Own, MOST_FORMAT_BYTES) {
        Ok(text) if text.trim().parse().is_ok_and(|found: u32| found <= FORMAT) => Ok(()),
        Ok(text) if text.trim().is_empty() => Err(StoreError::Format {
            path,
            what: "empty",
        }),
        Ok(text) => Err(StoreError::Newer {
            path: root.to_owned(),
            found: text.trim().chars().take(20).collect(),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(StoreError::Format {
            path,
            what: "no text",
        }),
        Err(error) => Err(at("opening", &path)(error)),
    }
}

/// Opens the index in SQLite's write-ahead mode, so that other processes can read while one process writes.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    for file in files_of_index(path) {
        // What is there must be a file: SQLite would follow a link, and wait for a pipe.
        match pagetide_outside::open(&file, Place::Own) {
            Err(why) if Refusal::of(&why).is_some() => return Err(at("opening", &file)(why)),
            _ => {}
        }
    }
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(64);
        // The switch to the write-ahead log does not wait for locks of other processes, so it is repeated.
        let mut tries = 0;
        loop {
            let mode = connection
                .query_row("PRAGMA journal_mode = WAL", [], |row| {
                    row.get::<_, String>(0)
                })
                .optional();
            match mode {
                Err(error)
                    if tries < 500
                        && error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) =>
                {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        // The record files are authoritative, so the index may lose its last rows in a power failure.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "cache_size", -32_768)?;
        schema::version(&connection)?;
        Ok(connection)
    };
    open().map_err(index(path))
}

/// Paths of the index and of SQLite's two auxiliary files.
fn files_of_index(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

/// Deletes a damaged index and SQLite's auxiliary files.
fn remove_index(path: &Path) -> Result<(), StoreError> {
    for file in files_of_index(path) {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(at("removing", &file)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A short description of a record, for a list of candidates in a message.
fn describe(row: &Row) -> String {
    format!(
        "{} is {} {} seed {}",
        row.id.get(..12).unwrap_or(&row.id),
        row.cell.subject.scenario,
        row.variant.name,
        row.seed
    )
}
