//! A row of the index: enough to list, pair and resume trials without opening record files.

use std::collections::HashSet;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::proof;

use pagetide_quantity::Nanos;
use pagetide_quantity::{Direction, Metric, Unit, Value};
use pagetide_record::Invalid;
use pagetide_record::Record;
use pagetide_record::{Subject, Variant};

/// The data that the index stores for a record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Row number in the index; valid only in this store and until the next rebuild.
    #[serde(skip)]
    pub row: i64,
    /// ID of the record.
    pub id: String,
    /// Key of the trial ([`Subject::key`]): a hash of everything that determines its results.
    pub key: String,
    /// SHA-256 of results and bulk sections, in hex.
    pub digest: String,
    /// The cell of the trial: its hash ([`Subject::cell`]) and the properties that all trials of the cell share.
    pub cell: Arc<CellInfo>,
    /// The kernel, boot arguments and settings that a campaign compares.
    pub variant: Arc<Variant>,
    /// The complete kernel command line.
    pub cmdline: Arc<str>,
    /// Digest of the guest program.
    pub guest: Arc<str>,
    /// ID of the campaign for which the trial ran. Other campaigns may use the record too.
    pub campaign: Arc<str>,
    /// Random seed of the trial.
    pub seed: u64,
    /// Number of the sampling unit within the cell, the same for all variants.
    pub unit: u32,
    /// Number of the repetition within the sampling unit.
    pub repetition: u32,
    /// Start of the trial, in nanoseconds since 1970.
    pub started: Nanos,
    /// Wall-clock time of the whole trial; 0 if unknown.
    pub wall: Nanos,
    /// Time from the scenario's start to its end on the trial's clock.
    pub elapsed: Nanos,
    /// Reason why the results are invalid, in one line; `None` for a valid trial.
    pub invalid: Option<Arc<str>>,
    /// True if all causes of the invalidity lie outside the trial, so that another attempt may succeed.
    pub accident: bool,
    /// Number of warnings in the record.
    pub warnings: u32,
}

/// The properties that are the same for all trials of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellInfo {
    /// Hash of the cell, [`Subject::cell`].
    pub hash: String,
    /// The subject of the cell's trials, without variant, seed, command line and guest program.
    pub subject: Subject,
}

/// Unit and direction of a metric, and whether it is primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) unit: Unit,
    pub(crate) direction: Direction,
    pub(crate) primary: bool,
}

impl Row {
    /// True if the results are valid.
    pub fn is_valid(&self) -> bool {
        self.invalid.is_none()
    }

    /// Returns the complete subject of the trial.
    pub fn subject(&self) -> Subject {
        let mut subject = self.cell.subject.clone();
        subject.variant = (*self.variant).clone();
        subject.seed = self.seed;
        subject.arena.cmdline = self.cmdline.to_string();
        subject.arena.guest = self.guest.to_string();
        subject
    }
}

/// Returns the subject without the properties that [`Subject::cell`] does not cover.
fn cell_subject(subject: &Subject) -> Subject {
    let mut cell = subject.clone();
    cell.variant = Variant::default();
    cell.seed = 0;
    cell.arena.cmdline = String::new();
    cell.arena.guest = String::new();
    cell
}

/// Returns the ID of the row with these values in a table of shared values. `find` is the query for it, `add` inserts
/// the row if there is none.
fn once(
    index: &Connection,
    find: &str,
    add: &str,
    values: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<i64> {
    let found = index
        .prepare_cached(find)?
        .query_row(values, |row| row.get(0))
        .optional()?;
    if let Some(id) = found {
        return Ok(id);
    }
    index.prepare_cached(add)?.insert(values)
}

fn text(index: &Connection, text: &str) -> rusqlite::Result<i64> {
    once(
        index,
        "SELECT id FROM text WHERE text = ?1",
        "INSERT INTO text (text) VALUES (?1)",
        &[&text],
    )
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl Row {
    /// Creates the index row of a record. Its row number is 0, because the row is not inserted yet.
    pub(crate) fn of(record: &Record) -> Self {
        let subject = &record.subject;
        let (wall, reasons) = (&record.wall, &record.results.invalid);
        Self {
            row: 0,
            id: record.id(),
            key: subject.key(),
            digest: record.digest.clone(),
            cell: Arc::new(CellInfo {
                hash: subject.cell(),
                subject: cell_subject(subject),
            }),
            variant: Arc::new(subject.variant.clone()),
            cmdline: subject.arena.cmdline.as_str().into(),
            guest: subject.arena.guest.as_str().into(),
            campaign: wall.campaign.as_str().into(),
            seed: subject.seed,
            unit: wall.unit,
            repetition: wall.repetition,
            started: wall.started,
            wall: wall.total,
            elapsed: record.results.elapsed,
            invalid: record.why_invalid().map(Into::into),
            accident: !reasons.is_empty() && reasons.iter().all(Invalid::is_accident),
            warnings: u32::try_from(record.results.warnings.len()).unwrap_or(u32::MAX),
        }
    }
}

/// Key of a metric within a record: name, unit, direction and whether it is primary.
pub(crate) type MetricKey<'a> = (&'a str, Unit, Direction, bool);

pub(crate) fn key(metric: &Metric) -> MetricKey<'_> {
    (&metric.name, metric.unit, metric.direction, metric.primary)
}

/// Returns the metrics of a record that the index stores: of several with the same [`MetricKey`], only the first. The
/// record file has all of them.
pub(crate) fn kept_metrics(record: &Record) -> Vec<&Metric> {
    let mut seen = HashSet::new();
    let metrics = record.results.metrics.iter();
    metrics.filter(|metric| seen.insert(key(metric))).collect()
}

/// Returns the ID of the cell's row and the checksum of its texts. Inserts the row if it does not exist.
fn cell(index: &Connection, cell: &CellInfo) -> rusqlite::Result<(i64, u64)> {
    let known: Option<(i64, String)> = index
        .prepare_cached("SELECT id, subject FROM cell WHERE hash = ?1")?
        .query_row([&cell.hash], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((id, subject)) = known {
        return Ok((id, proof::of_texts(&[&cell.hash, &subject])));
    }
    let subject = json(&cell.subject);
    let id = index
        .prepare_cached("INSERT INTO cell (hash, scenario, subject) VALUES (?1, ?2, ?3)")?
        .insert(params![cell.hash, cell.subject.scenario, subject])?;
    Ok((id, proof::of_texts(&[&cell.hash, &subject])))
}

/// Inserts a record; a record that exists is left unchanged. The caller must have opened a transaction.
pub(crate) fn insert(index: &Connection, record: &Record) -> rusqlite::Result<()> {
    insert_row(index, record, &Row::of(record))
}

/// Inserts a record with a row computed in advance; a record that exists is left unchanged. The caller must have opened
/// a transaction.
pub(crate) fn insert_row(index: &Connection, record: &Record, row: &Row) -> rusqlite::Result<()> {
    let (cell, cell_proof) = cell(index, &row.cell)?;
    let spec = json(&*row.variant);
    let variant = once(
        index,
        "SELECT id FROM variant WHERE name = ?1 AND spec = ?2",
        "INSERT INTO variant (name, spec) VALUES (?1, ?2)",
        &[&row.variant.name, &spec],
    )?;
    let invalid = match &row.invalid {
        Some(why) => Some(text(index, why)?),
        None => None,
    };
    let metrics = kept_metrics(record);
    let time = |time: Nanos| time.0.cast_signed();
    let added = index
        .prepare_cached(
            "INSERT OR IGNORE INTO record (id, key, digest, cell, variant, cmdline, guest, campaign, seed, unit,
             repetition, started, wall, elapsed, invalid, accident, warnings, metrics, proof)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
        )?
        .execute(params![
            row.id,
            row.key,
            row.digest,
            cell,
            variant,
            text(index, &row.cmdline)?,
            text(index, &row.guest)?,
            text(index, &row.campaign)?,
            row.seed.cast_signed(),
            row.unit,
            row.repetition,
            time(row.started),
            time(row.wall),
            time(row.elapsed),
            invalid,
            row.accident,
            row.warnings,
            i64::try_from(metrics.len()).unwrap_or(i64::MAX),
            checksum(row, cell_proof, proof::of_texts(&[&spec])),
        ])?;
    if added == 0 {
        return Ok(());
    }
    let number = index.last_insert_rowid();
    for metric in metrics {
        insert_metric(index, &record.subject.scenario, number, metric)?;
    }
    Ok(())
}

fn insert_metric(
    index: &Connection,
    scenario: &str,
    row: i64,
    metric: &Metric,
) -> rusqlite::Result<()> {
    let head = json(&Head {
        unit: metric.unit,
        direction: metric.direction,
        primary: metric.primary,
    });
    let definition = once(
        index,
        "SELECT id FROM definition WHERE scenario = ?1 AND name = ?2 AND head = ?3",
        "INSERT INTO definition (scenario, name, head) VALUES (?1, ?2, ?3)",
        &[&scenario, &metric.name, &head],
    )?;
    let (value, why) = match &metric.value {
        // NaN is stored as NULL.
        Value::Number(value) if value.is_nan() => (None, None),
        Value::Number(value) => (Some(*value), None),
        Value::Absent(why) => (None, Some(why.as_str())),
    };
    let absent = why.map(|why| text(index, why)).transpose()?;
    let of_definition = proof::of_texts(&[scenario, &metric.name, &head]);
    index
        .prepare_cached(
            "INSERT INTO metric (definition, record, value, absent, proof) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            definition,
            row,
            value,
            absent,
            proof::of_value(row, of_definition, value, why)
        ])?;
    Ok(())
}

/// Removes a record and its metrics from the index, if it is there. The caller must have opened a transaction.
pub(crate) fn remove(index: &Connection, id: &str) -> rusqlite::Result<()> {
    let row: Option<i64> = index
        .prepare_cached("SELECT row FROM record WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    if let Some(row) = row {
        index
            .prepare_cached(
                "DELETE FROM metric WHERE definition IN (SELECT id FROM definition) AND record = ?1",
            )?
            .execute([row])?;
        index
            .prepare_cached("DELETE FROM record WHERE row = ?1")?
            .execute([row])?;
    }
    Ok(())
}

/// Returns the checksum of a row without its metrics, whose values have checksums of their own. `cell` and `variant`
/// are the checksums of the texts of the row's cell and variant.
pub(crate) fn checksum(row: &Row, cell: u64, variant: u64) -> i64 {
    let mut proof = proof::Proof::new();
    for text in [
        &*row.id,
        &row.key,
        &row.digest,
        &row.cmdline,
        &row.guest,
        &row.campaign,
    ] {
        proof = proof.text(text);
    }
    let invalid = row.invalid.as_deref();
    for number in [
        cell,
        variant,
        row.seed,
        u64::from(row.unit),
        u64::from(row.repetition),
        row.started.0,
        row.wall.0,
        row.elapsed.0,
        u64::from(row.accident),
        u64::from(row.warnings),
        u64::from(invalid.is_some()),
    ] {
        proof = proof.number(number);
    }
    proof.text(invalid.unwrap_or_default()).kept()
}
