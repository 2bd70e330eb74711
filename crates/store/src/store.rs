//! An open store: writing, adding, finding and loading records.

mod verify;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use pagetide_quantity::Metric;
use pagetide_quantity::Nanos;
use pagetide_record::Record;
use pagetide_record::{FileError, RecordReader, RecordWriter};

use crate::database::database_of;
use crate::error::{StoreError, TransactionError, at, index};
use crate::files::{check_format, entries, has_writer, is_recent, path, replace, settle};
use crate::index::{connect, enter, fill, remove_index};
use crate::note::{CampaignLock, CampaignNote};
use crate::report::{DamagedFile, StoreReport};
use crate::row::Row;
use crate::running::RunState;
use crate::schema::FORMAT;
use crate::select::{Filter, Point};
use crate::short::short;
use crate::{catch_up, many, note, read_only, row, running, schema, select};

/// Maximum number of records that are added in one transaction, so that the disk is flushed once for all of them.
const AT_ONCE: usize = 16_384;
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

impl Store {
    /// Returns the default folder of the store: `PAGETIDE_STORE`, else `pagetide` below `XDG_DATA_HOME`, else
    /// `pagetide` below `~/.local/share`. Fails with [`StoreError::NoHome`] if `PAGETIDE_STORE`, `XDG_DATA_HOME` and
    /// `HOME` are all empty or not set.
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

    /// Opens a store, and creates it if needed. Adds the complete record files and deletes the incomplete ones that a
    /// killed process left, and updates the index from the record files. A store that cannot be written is opened for
    /// reading.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        check_format(root)?;
        let error = match Self::open_to_write(root) {
            Err(error) => error,
            opened => return opened,
        };
        match error.why_read_only() {
            Some(why) if root.join("records").is_dir() => {
                let database = database_of(root);
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
        let database = database_of(root);
        if let Some(folder) = database.parent() {
            std::fs::create_dir_all(folder).map_err(at("creating", folder))?;
        }
        let open = |connection| Self {
            root: root.to_owned(),
            index: connection,
            database: database.clone(),
            why_read_only: None,
        };
        let mut store = match connect(&database) {
            Ok(connection) => open(connection),
            Err(StoreError::Index { .. }) => {
                // A damaged index is rebuilt, because the record files contain all of its data.
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

    /// Updates the index after record files were added, deleted or copied by hand. Does nothing if the store can only
    /// be read.
    pub(crate) fn catch_up(&self) -> Result<(), StoreError> {
        let sorted = |trouble| match trouble {
            TransactionError::Index(error) => index(&self.database)(error),
            TransactionError::Store(error) => error,
        };
        let folders = catch_up::folders(&self.index, &self.root).map_err(sorted)?;
        if folders.is_empty() || self.why_read_only.is_some() {
            return Ok(());
        }
        let bring = || -> Result<(), TransactionError> {
            let transaction =
                Transaction::new_unchecked(&self.index, TransactionBehavior::Immediate)?;
            catch_up::bring(&transaction, &self.root, &folders, |id| {
                self.path(id).exists()
            })?;
            Ok(transaction.commit()?)
        };
        bring().map_err(sorted)
    }

    /// Adds records to the index whose files other processes have added with [`deposit`](crate::deposit). Removes those
    /// whose files are gone.
    pub fn refresh(&self) -> Result<(), StoreError> {
        self.catch_up()
    }

    /// Returns the path of the store's folder.
    pub fn folder(&self) -> &Path {
        &self.root
    }

    /// Creates the writer of a new record in this store. The writer may be used in any thread, without the store; its
    /// finished file is added with [`Store::admit`].
    pub fn writer(&self) -> Result<RecordWriter, StoreError> {
        RecordWriter::create(&self.root.join("incoming")).map_err(StoreError::writing)
    }

    /// Completes a record, writes it and adds it to the store. Returns the path of the record file.
    pub fn add(
        &mut self,
        writer: RecordWriter,
        record: &mut Record,
    ) -> Result<PathBuf, StoreError> {
        let path = writer.finish(record).map_err(StoreError::writing)?;
        self.admit(&path, record)
    }

    /// Adds many records without bulk sections. Up to 16,384 records at a time are flushed to disk and added in one
    /// transaction. Records that were added before an error remain.
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
    /// left out. Fails with [`StoreError::ReadOnly`] if the store cannot be written.
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

    /// Returns the damaged record files that were found when files were added to the index, if they still exist.
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

    /// Returns the records that match the filter, newest first.
    pub fn select(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        select::select(&self.index, filter).map_err(index(&self.database))
    }

    /// Returns the number of records that match the filter, without regard to the filter's limit.
    pub fn count(&self, filter: &Filter) -> Result<u64, StoreError> {
        select::count(&self.index, filter).map_err(index(&self.database))
    }

    /// Returns the record whose ID begins with `prefix`. Fails if no record or several records have this prefix. If the
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

    /// Returns the records of the trials with these keys ([`Subject::key`](pagetide_record::Subject::key)), newest
    /// first.
    pub fn by_keys(&self, keys: &[String]) -> Result<Vec<Row>, StoreError> {
        select::by_keys(&self.index, keys).map_err(index(&self.database))
    }

    /// Returns the hashes of all cells ([`Subject::cell`](pagetide_record::Subject::cell)) in the index, including
    /// cells whose records were all removed since the last rebuild.
    pub fn cell_hashes(&self) -> Result<HashSet<String>, StoreError> {
        select::cell_hashes(&self.index).map_err(index(&self.database))
    }

    /// Returns the metrics of these records of one scenario, each with its record's [`Row::row`], grouped by metric.
    /// `rows` has the row numbers of the records.
    pub fn metrics(&self, scenario: &str, rows: &[i64]) -> Result<Vec<(i64, Metric)>, StoreError> {
        select::metrics(&self.index, scenario, rows).map_err(index(&self.database))
    }

    /// Returns the values of a metric in all records that match the filter, oldest first. Records in which the metric
    /// is absent or not a number are left out. The filter's limit keeps the newest values. Invalid records are included
    /// unless the filter excludes them.
    pub fn history(&self, metric: &str, filter: &Filter) -> Result<Vec<Point>, StoreError> {
        select::history(&self.index, metric, filter).map_err(index(&self.database))
    }

    /// Returns the median wall-clock time of the newest valid trials of a cell, at most 31, or of the scenario if the
    /// cell has none or is `None`; `None` if the scenario has none either.
    pub fn typical_wall(
        &self,
        cell: Option<&str>,
        scenario: &str,
    ) -> Result<Option<Nanos>, StoreError> {
        select::typical_wall(&self.index, cell, scenario).map_err(index(&self.database))
    }

    /// Returns the current path of a record's file, whether or not the file exists.
    pub fn path(&self, id: &str) -> PathBuf {
        path(&self.root, id)
    }

    /// True if the store can only be read.
    pub fn is_read_only(&self) -> bool {
        self.why_read_only.is_some()
    }

    /// Returns the reason why the store can only be read; `None` if it can be written.
    pub(crate) fn why_read_only(&self) -> Option<io::ErrorKind> {
        self.why_read_only
    }

    /// Opens the file of a record. Fails with [`StoreError::Gone`] if the file was deleted; the index is then updated.
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

    /// Returns the note (the content of the file) of the campaign with this ID; `None` if there is no such campaign.
    pub fn campaign(&self, id: &str) -> Result<Option<CampaignNote>, StoreError> {
        note::read(&self.root.join("campaigns"), id)
    }

    /// Writes the progress of a campaign's run, replacing older progress.
    pub fn note_run(&self, state: &RunState) -> Result<(), StoreError> {
        running::write(&self.root.join("runs"), state)
    }

    /// Returns the progress of the last run of the campaign with this name; `None` if there is no readable progress
    /// file.
    pub fn run_of(&self, name: &str) -> Option<RunState> {
        running::read(&self.root.join("runs"), name)
    }

    /// Returns the ID of the process that runs the campaign with this name now; `None` if no process does or its ID
    /// cannot be read.
    pub fn runner(&self, name: &str) -> Result<Option<u32>, StoreError> {
        running::holder(&self.root.join("campaigns"), name)
    }

    /// Returns the IDs of all campaigns, the most recently written first.
    pub fn campaigns(&self) -> Result<Vec<String>, StoreError> {
        note::ids(&self.root.join("campaigns"))
    }

    /// Returns the note of the latest run of the campaign with this name; `None` if there is no such campaign.
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

    pub(crate) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, TransactionError>,
    ) -> Result<T, StoreError> {
        let run = || -> Result<T, TransactionError> {
            let transaction = self
                .index
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        run().map_err(|trouble| match trouble {
            TransactionError::Index(error) => index(&self.database)(error),
            TransactionError::Store(error) => error,
        })
    }

    /// Moves the complete records in `incoming` to their folders and adds them to the index. Removes incomplete files
    /// whose writers no longer run, and the locks of processes that were killed.
    fn take_in(&mut self) -> Result<(), StoreError> {
        // A process of another machine is not in `/proc`, so on a shared file system recent files are kept too.
        let is_shared = !self.database.starts_with(&self.root);
        let may_be_written = |path: &Path| has_writer(path) || (is_shared && is_recent(path));
        for path in entries(&self.root.join("incoming"))? {
            match path.extension().and_then(|e| e.to_str()) {
                Some("record") => self.take(&path)?,
                Some("part") if !may_be_written(&path) => {
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
            if path.extension().is_some_and(|e| e == "new") && !may_be_written(&path) {
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

/// Returns a short description of a record, for a list of candidates in a message.
fn describe(row: &Row) -> String {
    format!(
        "{} is {} {} seed {}",
        short(&row.id),
        row.cell.subject.scenario,
        row.variant.name,
        row.seed
    )
}
