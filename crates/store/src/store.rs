//! An open store: records are written, admitted, found and loaded.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use pagetide_quantity::Metric;
use pagetide_quantity::Nanos;
use pagetide_record::Record;
use pagetide_record::{FileError, RecordReader, RecordWriter};

use crate::error::{StoreError, Trouble, at, index};
use crate::note::{CampaignLock, CampaignNote};
use crate::row::Row;
use crate::running::RunState;
use crate::select::{Filter, Point};
use crate::{catch_up, many, note, read_only, row, running, schema, select};

/// Version of the layout; a store of a later one is refused.
pub const FORMAT: u32 = 1;
/// How long a process waits for another to finish writing the index.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Records that are added together: each time waits for the disk once.
const AT_ONCE: usize = 16_384;
/// Names of records shown where a prefix fits several.
const SOME: u32 = 4;

/// An open store.
pub struct Store {
    root: PathBuf,
    database: PathBuf,
    index: Connection,
    is_read_only: bool,
}

/// A record file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// Why, in one sentence.
    pub why: String,
    /// Whether it is the index, which `rebuild` mends; a record is whole then.
    pub index: bool,
}

/// What rebuilding or verifying a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StoreReport {
    /// Records that are whole.
    pub records: u64,
    /// Files that cannot be used; they stay where they are.
    pub damaged: Vec<DamagedFile>,
}

impl StoreReport {
    /// What was found, a line each; `done` says what the records are now, such as "whole".
    pub fn text(&self, done: &str) -> String {
        let mut text = format!("{} records are {done}\n", self.records);
        for damaged in &self.damaged {
            // A record is whole where only the index disagrees with it, and must not be moved away.
            let remedy = if damaged.index { "" } else { "; move it away" };
            let (path, why) = (damaged.path.display(), &damaged.why);
            let _ = writeln!(text, "damaged: {path} ({why}){remedy}");
        }
        text
    }
}

/// Gives a file new contents at once: a reader sees the old or the new ones.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let part = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&part, bytes).map_err(|error| {
        let _ = std::fs::remove_file(&part);
        at("writing", path)(error)
    })?;
    std::fs::rename(&part, path).map_err(at("writing", path))
}

/// Removes a file; one that is gone already is as good.
pub(crate) fn take_away(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(at("removing", path)(why)),
        _ => Ok(()),
    }
}

impl Store {
    /// The folder that is used where none is named: `PAGETIDE_STORE`, else `pagetide` below `XDG_DATA_HOME`, else below
    /// `~/.local/share`.
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

    /// Opens a store, making it where there is none, takes in what a killed process left behind, and brings the index up to
    /// what lies in its folders. A store that cannot be written is opened to be read.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        check_format(root)?;
        match Self::open_to_write(root) {
            Err(StoreError::Folder { .. } | StoreError::IndexFull { .. })
                if root.join("records").is_dir() =>
            {
                let database = root.join("index.sqlite");
                Ok(Self {
                    index: read_only::connect(root, &database)?,
                    root: root.to_owned(),
                    database,
                    is_read_only: true,
                })
            }
            other => other,
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
            is_read_only: false,
        };
        let mut store = match connect(&database) {
            Ok(connection) => open(connection),
            Err(StoreError::Index { .. }) => {
                // A damaged index holds nothing that the files do not: make it anew.
                remove_index(&database)?;
                open(connect(&database)?)
            }
            Err(error) => return Err(error),
        };
        if schema::version(&store.index).map_err(index(&store.database))? != schema::VERSION {
            store.transaction(|index| {
                // Another process may have done so meanwhile.
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

    /// Brings the index up to what lies in the folders of records.
    pub(crate) fn catch_up(&self) -> Result<(), StoreError> {
        let sorted = |trouble| match trouble {
            Trouble::Index(error) => index(&self.database)(error),
            Trouble::Store(error) => error,
        };
        let folders = catch_up::folders(&self.index, &self.root).map_err(sorted)?;
        if folders.is_empty() || self.is_read_only {
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

    /// The store's folder.
    pub fn folder(&self) -> &Path {
        &self.root
    }

    /// Begins a record in this store. Needs no lock and may go on in any thread; see [`Store::admit`].
    pub fn writer(&self) -> Result<RecordWriter, StoreError> {
        RecordWriter::create(&self.root.join("incoming")).map_err(StoreError::writing)
    }

    /// Completes a record and adds it.
    pub fn add(
        &mut self,
        writer: RecordWriter,
        record: &mut Record,
    ) -> Result<PathBuf, StoreError> {
        let path = writer.finish(record).map_err(StoreError::writing)?;
        self.admit(&path, record)
    }

    /// Adds many records without bulk sections, [`AT_ONCE`] in one transaction, and brings them to the disk together.
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

    /// Adds a record that [`RecordWriter::finish`] left at `path`, which lies in this store's `incoming`. Returns where
    /// it lies for good.
    pub fn admit(&mut self, path: &Path, record: &Record) -> Result<PathBuf, StoreError> {
        self.transaction(|index| Ok(row::insert(index, record)?))?;
        settle(&self.root, path, &record.id())
    }

    /// Makes the index anew from the files. Every section of every record is read: damaged files are listed and left out.
    pub fn rebuild(&mut self) -> Result<StoreReport, StoreError> {
        if self.is_read_only {
            return Err(StoreError::ReadOnly {
                path: self.root.clone(),
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

    /// Reads every record whole and compares it with what the index says of it.
    pub fn verify(&self) -> Result<StoreReport, StoreError> {
        self.catch_up()?;
        let mut found = StoreReport {
            records: 0,
            damaged: self.damaged()?,
        };
        let ids = select::all_ids(&self.index).map_err(index(&self.database))?;
        for id in ids {
            let path = self.path(&id);
            match self.verify_one(&id) {
                Ok(()) => found.records += 1,
                Err(_) if found.damaged.iter().any(|known| known.path == path) => {}
                Err(why) => {
                    let index = matches!(why, StoreError::Disagrees { .. });
                    found.damaged.push(DamagedFile {
                        path: if index { self.database.clone() } else { path },
                        why: why.to_string(),
                        index,
                    });
                }
            }
        }
        Ok(found)
    }

    fn verify_one(&self, id: &str) -> Result<(), StoreError> {
        let reader = RecordReader::open(&self.path(id))?;
        reader.verify()?;
        let disagrees = || StoreError::Disagrees {
            path: self.database.clone(),
            id: id.to_owned(),
        };
        let record = reader.record();
        let mut found = select::by_prefix(&self.index, id, 1).map_err(index(&self.database))?;
        let row = found.pop().ok_or_else(disagrees)?;
        let metrics = self.metrics(&record.subject.scenario, &[row.row])?;
        let same_metrics = metrics.len() == row::kept_metrics(record).len()
            && row::kept_metrics(record)
                .into_iter()
                .all(|metric| metrics.iter().any(|(_, kept)| same(kept, metric)));
        let of_record = Row {
            row: row.row,
            ..Row::of(record)
        };
        (row == of_record && same_metrics)
            .then_some(())
            .ok_or_else(disagrees)
    }

    /// Files that cannot be used and are still there.
    pub fn damaged(&self) -> Result<Vec<DamagedFile>, StoreError> {
        let damaged = || -> rusqlite::Result<Vec<DamagedFile>> {
            self.index
                .prepare_cached("SELECT path, why FROM damaged ORDER BY path")?
                .query_map([], |row| {
                    Ok(DamagedFile {
                        path: PathBuf::from(row.get::<_, String>(0)?),
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

    /// Records that fit, newest first.
    pub fn select(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        select::select(&self.index, filter).map_err(index(&self.database))
    }

    /// Number of records that fit, whatever the filter's limit.
    pub fn count(&self, filter: &Filter) -> Result<u64, StoreError> {
        select::count(&self.index, filter).map_err(index(&self.database))
    }

    /// The record whose identity begins with `prefix`. Where the index has none, the folders are looked into once more: it may
    /// have been copied in by hand.
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

    /// Identities of all cells there are records of, [`Subject::cell`](pagetide_record::Subject::cell).
    pub fn cell_hashes(&self) -> Result<HashSet<String>, StoreError> {
        select::cell_hashes(&self.index).map_err(index(&self.database))
    }

    /// Metrics of some records of one scenario, each with the [`Row::row`] it belongs to, metric by metric.
    pub fn metrics(&self, scenario: &str, rows: &[i64]) -> Result<Vec<(i64, Metric)>, StoreError> {
        select::metrics(&self.index, scenario, rows).map_err(index(&self.database))
    }

    /// A metric over all records that fit and have it, oldest first. Invalid records are in it unless the filter leaves
    /// them out; the limit keeps the newest.
    pub fn history(&self, metric: &str, filter: &Filter) -> Result<Vec<Point>, StoreError> {
        select::history(&self.index, metric, filter).map_err(index(&self.database))
    }

    /// Median wall-clock time of the newest valid trials of a cell, or of its scenario where the cell is new.
    pub fn typical_wall(
        &self,
        cell: Option<&str>,
        scenario: &str,
    ) -> Result<Option<Nanos>, StoreError> {
        select::typical_wall(&self.index, cell, scenario).map_err(index(&self.database))
    }

    /// Where the file of a record lies.
    pub fn path(&self, id: &str) -> PathBuf {
        let place = self.place(id);
        if place.exists() {
            return place;
        }
        // In the moment between index and place the record is still where it was written.
        let waiting = self.root.join("incoming").join(format!("{id}.record"));
        if waiting.exists() { waiting } else { place }
    }

    /// Whether it can only be read.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Opens a record.
    pub fn load(&self, id: &str) -> Result<RecordReader, StoreError> {
        match RecordReader::open(&self.path(id)) {
            Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                // It was moved between the look and the opening, or it is gone.
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

    /// Remembers a campaign, or what it has become.
    pub fn note(&self, note: &CampaignNote) -> Result<(), StoreError> {
        note::write(&self.root.join("campaigns"), note)
    }

    /// Keeps other processes from running the campaign of this name until the value is dropped.
    pub fn lock_campaign(&self, name: &str) -> Result<CampaignLock, StoreError> {
        note::lock(&self.root.join("campaigns"), name)
    }

    /// The campaign of this identity; `None` where there is none.
    pub fn campaign(&self, id: &str) -> Result<Option<CampaignNote>, StoreError> {
        note::read(&self.root.join("campaigns"), id)
    }

    /// Remembers how a run of a campaign stands.
    pub fn note_run(&self, state: &RunState) -> Result<(), StoreError> {
        running::write(&self.root.join("runs"), state)
    }

    /// How the last run of the campaign of this name stands; `None` where none was noted.
    pub fn run_of(&self, name: &str) -> Option<RunState> {
        running::read(&self.root.join("runs"), name)
    }

    /// The process that runs the campaign of this name now; `None` where none does.
    pub fn runner(&self, name: &str) -> Result<Option<u32>, StoreError> {
        running::holder(&self.root.join("campaigns"), name)
    }

    /// Identities of all campaigns, the one run last first.
    pub fn campaigns(&self) -> Result<Vec<String>, StoreError> {
        note::ids(&self.root.join("campaigns"))
    }

    /// The latest run of the campaign of this name; `None` where there is none.
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

    fn place(&self, id: &str) -> PathBuf {
        place(&self.root, id)
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

    /// Takes in what lies in `incoming`: complete records are entered and moved, parts of dead writers removed.
    fn take_in(&mut self) -> Result<(), StoreError> {
        for path in entries(&self.root.join("incoming"))? {
            match path.extension().and_then(|e| e.to_str()) {
                Some("record") => self.take(&path)?,
                Some("part") if !has_writer(&path) => {
                    // Another process may be cleaning up as well.
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
                // Its own writer moved it in between; that is as good.
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

/// Makes an index anew from all files; `whole` reads every section of each. Belongs into a transaction.
pub(crate) fn fill(index: &Connection, root: &Path, whole: bool) -> Result<(), Trouble> {
    schema::create(index)?;
    for path in all_files(root)? {
        enter(index, root, &path, whole)?;
    }
    Ok(())
}

/// Whether two metrics are the same; what is no number equals itself.
fn same(kept: &Metric, metric: &Metric) -> bool {
    let is_no_number = |m: &Metric| m.value.number().is_none_or(f64::is_nan);
    let head = |m: &Metric| (m.name.clone(), m.unit, m.direction, m.primary);
    kept == metric || (head(kept) == head(metric) && is_no_number(kept) && is_no_number(metric))
}

/// Enters one file into the index, or into the list of damaged ones; `whole` reads every section of it. Belongs into a
/// transaction.
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
    match read() {
        Ok(reader) => {
            index
                .prepare_cached("DELETE FROM damaged WHERE path = ?1")?
                .execute([path.to_string_lossy()])?;
            row::insert(index, reader.record())
        }
        // It was moved to its place, where it is found as well.
        Err(_) if !path.exists() => Ok(()),
        Err(why) => {
            index
                .prepare_cached("INSERT OR REPLACE INTO damaged (path, why) VALUES (?1, ?2)")?
                .execute(params![path.to_string_lossy(), why])?;
            Ok(())
        }
    }
}

/// Moves a record that is in the index to where it lies for good.
pub(crate) fn settle(root: &Path, path: &Path, id: &str) -> Result<PathBuf, StoreError> {
    let place = place(root, id);
    let mut moved = std::fs::rename(path, &place);
    if moved.is_err()
        && let Some(folder) = place.parent()
    {
        // The first record of its folder, or another process has moved it.
        std::fs::create_dir_all(folder).map_err(at("creating", folder))?;
        moved = std::fs::rename(path, &place);
    }
    match moved {
        Ok(()) => Ok(place),
        // Another process opened the store in between and has moved it already.
        Err(_) if place.exists() => Ok(place),
        Err(error) => Err(at("moving a record to", &place)(error)),
    }
}

/// Where a record lies for good.
fn place(root: &Path, id: &str) -> PathBuf {
    let folder = id.get(..2).unwrap_or("xx");
    root.join("records")
        .join(folder)
        .join(format!("{id}.record"))
}

/// All complete record files. `incoming` is looked at first: what is moved meanwhile is then found in its place.
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

/// What a folder holds, in no order.
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

/// Whether the process that writes a temporary file still runs. The last number before the extension, or else the first
/// in the name, is its process id: `quick.PID.new`, `PID-….part`.
fn has_writer(file: &Path) -> bool {
    let stem = file
        .file_stem()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
    let pid = number(stem.rsplit('.').next()).or_else(|| number(stem.split('-').next()));
    pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

/// Refuses a store of a later format.
fn check_format(root: &Path) -> Result<(), StoreError> {
    let path = root.join("format");
    match std::fs::read_to_string(&path) {
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

/// Opens the index in the mode that lets others read while one writes.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(64);
        // Switching to the write-ahead log does not wait for others by itself.
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
        // The files are the truth; the index need not survive a power failure to the last row.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "cache_size", -32_768)?;
        schema::version(&connection)?;
        Ok(connection)
    };
    open().map_err(index(path))
}

/// Removes a damaged index.
fn remove_index(path: &Path) -> Result<(), StoreError> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let file = PathBuf::from(name);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(at("removing", &file)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A record in a few words, for choosing among several.
fn describe(row: &Row) -> String {
    format!(
        "{} is {} {} seed {}",
        row.id.get(..12).unwrap_or(&row.id),
        row.cell.subject.scenario,
        row.variant.name,
        row.seed
    )
}
