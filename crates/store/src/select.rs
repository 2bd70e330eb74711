//! SQL queries on the index.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params, params_from_iter};

use pagetide_quantity::Nanos;
use pagetide_quantity::{Metric, Value};
use pagetide_record::{ArenaKind, Pass, Subject, Variant};

use crate::proof::{self, Disagreement};
use crate::row::{CellInfo, Head, Row};

/// Conditions that records must meet; `None` means any value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Name of the scenario.
    pub scenario: Option<String>,
    /// Hash of the cell.
    pub cell: Option<String>,
    /// Name of the variant.
    pub variant: Option<String>,
    /// Release of the kernel.
    pub release: Option<String>,
    /// ID of the campaign for which the trial ran.
    pub campaign: Option<String>,
    /// Kind of arena.
    pub arena: Option<ArenaKind>,
    /// Pass of the trial: timed, observed or profiled.
    pub pass: Option<Pass>,
    /// `true` for valid records, `false` for invalid ones.
    pub valid: Option<bool>,
    /// Maximum number of records to return: the newest.
    pub limit: Option<u32>,
}

/// The value of a metric in one record.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Point {
    /// Row of the record in the index.
    pub record: Row,
    /// The metric, with its value in the record.
    pub metric: Metric,
}

const COLUMNS: &str = "row, id, key, digest, cell, variant, cmdline, guest, campaign, seed, unit, repetition, started, \
                       wall, elapsed, invalid, accident, warnings, record.proof";

/// Cells, variants and texts that rows share. During a query, each of them is read from the index only once.
struct Lookups<'a> {
    index: &'a Connection,
    /// Cells by row id, each with the checksum of the cell's texts.
    cells: HashMap<i64, (Arc<CellInfo>, u64)>,
    variants: HashMap<i64, (Arc<Variant>, u64)>,
    texts: HashMap<i64, Arc<str>>,
}

/// Returns the value of `key` in `map`. A missing value is computed with `ask` and inserted.
fn shared<K: Hash + Eq + Copy, V: Clone>(
    map: &mut HashMap<K, V>,
    key: K,
    ask: impl FnOnce() -> rusqlite::Result<V>,
) -> rusqlite::Result<V> {
    if let Some(value) = map.get(&key) {
        return Ok(value.clone());
    }
    let value = ask()?;
    map.insert(key, value.clone());
    Ok(value)
}

/// Parses the JSON in a column of the index.
fn parse<T: serde::de::DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}

impl<'a> Lookups<'a> {
    fn new(index: &'a Connection) -> Self {
        Self {
            index,
            cells: HashMap::new(),
            variants: HashMap::new(),
            texts: HashMap::new(),
        }
    }

    fn text(&mut self, id: i64) -> rusqlite::Result<Arc<str>> {
        shared(&mut self.texts, id, || {
            self.index
                .prepare_cached("SELECT text FROM text WHERE id = ?1")?
                .query_row([id], |row| row.get(0))
        })
    }

    fn cell(&mut self, id: i64) -> rusqlite::Result<(Arc<CellInfo>, u64)> {
        shared(&mut self.cells, id, || {
            let (hash, subject): (String, String) = self
                .index
                .prepare_cached("SELECT hash, subject FROM cell WHERE id = ?1")?
                .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let proof = proof::of_texts(&[&hash, &subject]);
            let subject: Subject = parse(1, &subject)?;
            Ok((Arc::new(CellInfo { hash, subject }), proof))
        })
    }

    fn variant(&mut self, id: i64) -> rusqlite::Result<(Arc<Variant>, u64)> {
        shared(&mut self.variants, id, || {
            let spec: String = self
                .index
                .prepare_cached("SELECT spec FROM variant WHERE id = ?1")?
                .query_row([id], |row| row.get(0))?;
            Ok((Arc::new(parse(0, &spec)?), proof::of_texts(&[&spec])))
        })
    }

    /// Converts a result row of SQLite whose first columns are [`COLUMNS`], and verifies its checksum.
    fn row(&mut self, row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
        let time = |column| row.get(column).map(|t: i64| Nanos(t.cast_unsigned()));
        let (cell, cell_proof) = self.cell(row.get(4)?)?;
        let (variant, variant_proof) = self.variant(row.get(5)?)?;
        let read = Row {
            row: row.get(0)?,
            id: row.get(1)?,
            key: row.get(2)?,
            digest: row.get(3)?,
            cell,
            variant,
            cmdline: self.text(row.get(6)?)?,
            guest: self.text(row.get(7)?)?,
            campaign: self.text(row.get(8)?)?,
            seed: row.get(9).map(|s: i64| s.cast_unsigned())?,
            unit: row.get(10)?,
            repetition: row.get(11)?,
            started: time(12)?,
            wall: time(13)?,
            elapsed: time(14)?,
            invalid: row
                .get::<_, Option<i64>>(15)?
                .map(|id| self.text(id))
                .transpose()?,
            accident: row.get(16)?,
            warnings: row.get(17)?,
        };
        if crate::row::checksum(&read, cell_proof, variant_proof) != row.get::<_, i64>(18)? {
            return Err(Disagreement { id: read.id }.into());
        }
        Ok(read)
    }

    fn rows(&mut self, sql: &str, values: &[Sql]) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.index.prepare_cached(sql)?;
        let mut found = statement.query(params_from_iter(values))?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            rows.push(self.row(row)?);
        }
        Ok(rows)
    }
}

impl Filter {
    /// Returns the conditions as an SQL text, and the values of the SQL parameters.
    fn conditions(&self) -> (String, Vec<Sql>) {
        let mut sql = String::from("1");
        let mut values = Vec::new();
        let mut also = |condition: &str, value: Option<String>| {
            if let Some(value) = value {
                values.push(Sql::Text(value));
                sql.push_str(" AND ");
                sql.push_str(&condition.replace('?', &format!("?{}", values.len())));
            }
        };
        // Cells, variants and texts are few: they are selected first, and the records by them.
        also(
            "cell IN (SELECT id FROM cell WHERE scenario = ?)",
            self.scenario.clone(),
        );
        also(
            "cell IN (SELECT id FROM cell WHERE hash = ?)",
            self.cell.clone(),
        );
        also(
            "cell IN (SELECT id FROM cell WHERE subject ->> '$.arena.kind' = ?)",
            self.arena.map(|kind| kind.to_string()),
        );
        also(
            "cell IN (SELECT id FROM cell WHERE subject ->> '$.pass' = ?)",
            self.pass.map(|pass| pass.to_string()),
        );
        also(
            "variant IN (SELECT id FROM variant WHERE name = ?)",
            self.variant.clone(),
        );
        also(
            "variant IN (SELECT id FROM variant WHERE spec ->> '$.kernel.release' = ?)",
            self.release.clone(),
        );
        also(
            "campaign = (SELECT id FROM text WHERE text = ?)",
            self.campaign.clone(),
        );
        match self.valid {
            Some(true) => sql.push_str(" AND invalid IS NULL"),
            Some(false) => sql.push_str(" AND invalid IS NOT NULL"),
            None => {}
        }
        (sql, values)
    }
}

/// Returns the records that match the filter, newest first.
pub(crate) fn select(index: &Connection, filter: &Filter) -> rusqlite::Result<Vec<Row>> {
    let (conditions, values) = filter.conditions();
    let limit = filter
        .limit
        .map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
    Lookups::new(index).rows(
        &format!(
            "SELECT {COLUMNS} FROM record WHERE {conditions} ORDER BY started DESC, row DESC{limit}"
        ),
        &values,
    )
}

/// Returns the number of records that match the filter.
pub(crate) fn count(index: &Connection, filter: &Filter) -> rusqlite::Result<u64> {
    let (conditions, values) = filter.conditions();
    index
        .prepare_cached(&format!("SELECT count(*) FROM record WHERE {conditions}"))?
        .query_row(params_from_iter(values), |row| row.get(0))
        .map(i64::cast_unsigned)
}

/// Returns the records whose trials have these keys, newest first.
pub(crate) fn by_keys(index: &Connection, keys: &[String]) -> rusqlite::Result<Vec<Row>> {
    let keys = serde_json::to_string(keys).unwrap_or_default();
    Lookups::new(index).rows(
        &format!(
            "SELECT {COLUMNS} FROM record WHERE key IN (SELECT value FROM json_each(?1))
             ORDER BY started DESC, row DESC"
        ),
        &[Sql::Text(keys)],
    )
}

/// Returns the first `limit` records whose IDs begin with `prefix`, ordered by ID.
pub(crate) fn by_prefix(
    index: &Connection,
    prefix: &str,
    limit: u32,
) -> rusqlite::Result<Vec<Row>> {
    // IDs are hexadecimal, so those with this prefix are smaller than the prefix followed by `g`.
    Lookups::new(index).rows(
        &format!(
            "SELECT {COLUMNS} FROM record WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT {limit}"
        ),
        &[
            Sql::Text(prefix.to_owned()),
            Sql::Text(format!("{prefix}g")),
        ],
    )
}

/// Returns the IDs of all records, unordered.
pub(super) fn all_ids(index: &Connection) -> rusqlite::Result<Vec<String>> {
    index
        .prepare_cached("SELECT id FROM record")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Returns the hashes of all cells in the index, including cells whose records were all removed since the last rebuild.
pub(super) fn cell_hashes(index: &Connection) -> rusqlite::Result<HashSet<String>> {
    index
        .prepare_cached("SELECT hash FROM cell")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Returns the number of records whose IDs begin with `prefix`.
pub(crate) fn count_prefix(index: &Connection, prefix: &str) -> rusqlite::Result<u64> {
    index
        .prepare_cached("SELECT count(*) FROM record WHERE id >= ?1 AND id < ?2")?
        .query_row(params![prefix, format!("{prefix}g")], |row| row.get(0))
        .map(i64::cast_unsigned)
}

/// Returns the metrics of these records of one scenario, as (row number, metric), grouped by metric. Fails if a
/// checksum is wrong or a metric is missing.
pub(crate) fn metrics(
    index: &Connection,
    scenario: &str,
    rows: &[i64],
) -> rusqlite::Result<Vec<(i64, Metric)>> {
    let rows = serde_json::to_string(rows).unwrap_or_default();
    let mut shared = Lookups::new(index);
    let mut all = Vec::new();
    let mut counts: HashMap<i64, i64> = HashMap::new();
    for definition in definitions(index, scenario, None)? {
        let mut statement = index.prepare_cached(
            "SELECT record, metric.value, absent, metric.proof FROM json_each(?2) AS wanted
             CROSS JOIN metric ON definition = ?1 AND record = wanted.value",
        )?;
        let mut found = statement.query(params![definition.id, rows])?;
        while let Some(row) = found.next()? {
            let of = row.get(0)?;
            let value = value(&mut shared, row.get(1)?, row.get(2)?)?;
            let proof = definition.proof_of(of, &value);
            if proof != row.get::<_, i64>(3)? {
                return Err(disagreement(index, of));
            }
            *counts.entry(of).or_default() += 1;
            all.push((of, definition.metric(value)));
        }
    }
    // Check that no metric is missing.
    let mut statement = index.prepare_cached(
        "SELECT row, metrics FROM json_each(?1) AS wanted CROSS JOIN record ON row = wanted.value",
    )?;
    let mut wanted = statement.query([rows])?;
    while let Some(row) = wanted.next()? {
        let of: i64 = row.get(0)?;
        if counts.get(&of).copied().unwrap_or(0) != row.get::<_, i64>(1)? {
            return Err(disagreement(index, of));
        }
    }
    Ok(all)
}

/// Returns the values of a metric in all records that match the filter, oldest first. Records in which the metric is
/// absent or not a number are left out. The filter's limit keeps the newest values.
pub(crate) fn history(
    index: &Connection,
    name: &str,
    filter: &Filter,
) -> rusqlite::Result<Vec<Point>> {
    let (conditions, mut values) = filter.conditions();
    let definition = values.len() + 1;
    let columns = COLUMNS.replace("row,", "record.row,");
    // Without a limit, all definitions are sorted together below.
    let order = filter.limit.map_or_else(String::new, |limit| {
        format!(" ORDER BY started DESC, record.row DESC LIMIT {limit}")
    });
    let sql = format!(
        "SELECT {columns}, metric.value, metric.proof FROM metric CROSS JOIN record ON record.row = metric.record
         WHERE definition = ?{definition} AND metric.value IS NOT NULL AND {conditions}{order}"
    );
    let scenarios = match &filter.scenario {
        Some(scenario) => vec![scenario.clone()],
        None => index
            .prepare_cached("SELECT DISTINCT scenario FROM definition WHERE name = ?1")?
            .query_map([name], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?,
    };
    let mut shared = Lookups::new(index);
    let mut points = Vec::new();
    values.push(Sql::Null);
    for scenario in scenarios {
        for kept in definitions(index, &scenario, Some(name))? {
            values[definition - 1] = Sql::Integer(kept.id);
            let mut statement = index.prepare_cached(&sql)?;
            let mut found = statement.query(params_from_iter(&values))?;
            while let Some(row) = found.next()? {
                let record = shared.row(row)?;
                let value = Value::Number(row.get(19)?);
                if kept.proof_of(record.row, &value) != row.get::<_, i64>(20)? {
                    return Err(Disagreement { id: record.id }.into());
                }
                let metric = kept.metric(value);
                points.push(Point { record, metric });
            }
        }
    }
    // The points of each definition are often in order already, which makes a stable sort fast.
    points.sort_by_key(|point| (point.record.started, point.record.row));
    // Each definition returned its newest points; keep the newest of all.
    let limit = filter.limit.and_then(|limit| usize::try_from(limit).ok());
    if let Some(more) = limit.and_then(|limit| points.len().checked_sub(limit)) {
        points.drain(..more);
    }
    Ok(points)
}

/// Definition of a metric in the index: name, unit, direction and whether it is primary.
struct Definition {
    id: i64,
    name: String,
    head: Head,
    /// Checksum of the texts of the definition.
    proof: u64,
}

impl Definition {
    fn metric(&self, value: Value) -> Metric {
        Metric {
            name: self.name.clone(),
            unit: self.head.unit,
            direction: self.head.direction,
            primary: self.head.primary,
            value,
        }
    }

    /// Returns the checksum that a value of this metric must have in the row `row`.
    fn proof_of(&self, row: i64, value: &Value) -> i64 {
        let (number, absent) = match value {
            Value::Number(number) => (Some(*number), None),
            Value::Absent(why) => (None, Some(why.as_str())),
        };
        proof::of_value(row, self.proof, number, absent)
    }
}

/// Creates the error for a row with a metric that does not match its checksum, or with too few metrics.
fn disagreement(index: &Connection, row: i64) -> rusqlite::Error {
    let id = index
        .prepare_cached("SELECT id FROM record WHERE row = ?1")
        .and_then(|mut of| of.query_row([row], |row| row.get(0)));
    let id = id.unwrap_or_else(|_| format!("in row {row}"));
    Disagreement { id }.into()
}

/// Returns the definitions of a scenario's metrics; if `name` is given, only those with this name.
fn definitions(
    index: &Connection,
    scenario: &str,
    name: Option<&str>,
) -> rusqlite::Result<Vec<Definition>> {
    index
        .prepare_cached(
            "SELECT id, name, head FROM definition WHERE scenario = ?1 AND (?2 IS NULL OR name = ?2) ORDER BY id",
        )?
        .query_map(params![scenario, name], |row| {
            let (name, head): (String, String) = (row.get(1)?, row.get(2)?);
            Ok(Definition {
                id: row.get(0)?,
                proof: proof::of_texts(&[scenario, &name, &head]),
                head: parse(2, &head)?,
                name,
            })
        })?
        .collect()
}

fn value(
    shared: &mut Lookups<'_>,
    value: Option<f64>,
    absent: Option<i64>,
) -> rusqlite::Result<Value> {
    Ok(match (value, absent) {
        (Some(value), _) => Value::Number(value),
        (None, Some(why)) => Value::Absent(shared.text(why)?.to_string()),
        (None, None) => Value::Absent(String::new()),
    })
}

/// Returns the median wall-clock time of the newest valid trials of a cell, at most 31, or of the scenario if the cell
/// has none; `None` if the scenario has none either. Trials whose time is unknown are left out.
pub(crate) fn typical_wall(
    index: &Connection,
    cell: Option<&str>,
    scenario: &str,
) -> rusqlite::Result<Option<Nanos>> {
    for (condition, value) in [("hash = ?1", cell), ("scenario = ?1", Some(scenario))] {
        let Some(value) = value else { continue };
        let mut times: Vec<i64> = index
            .prepare_cached(&format!(
                "SELECT wall FROM record WHERE cell IN (SELECT id FROM cell WHERE {condition}) AND invalid IS NULL
                 AND wall > 0 ORDER BY started DESC LIMIT 31"
            ))?
            .query_map([value], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        times.sort_unstable();
        if let Some(median) = times.get(times.len() / 2) {
            return Ok(Some(Nanos(median.cast_unsigned())));
        }
    }
    Ok(None)
}
