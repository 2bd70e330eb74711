//! Compares the record files with the index.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use pagetide_quantity::Metric;
use pagetide_record::{Record, RecordReader};

use super::Store;
use crate::error::{StoreError, index};
use crate::files::path;
use crate::many;
use crate::report::{DamagedFile, StoreReport};
use crate::row::{self, MetricKey, Row};
use crate::select;

/// Number of records that verification holds in memory at the same time.
const READ_AT_ONCE: usize = 1024;

impl Store {
    /// Reads all sections of all records, and compares the records with the index. Returns the number of undamaged
    /// records, and what is damaged.
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

    /// Returns the IDs, among `ids`, of the records whose row or metrics in the index differ from the record file.
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
            // First compares the metrics of all rows with one query. Only if they differ, compares each row, to find
            // the wrong ones.
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

    /// True if the index has exactly the metrics of these records for these rows.
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
}

/// True if two metrics are equal. A value that is NaN or missing is equal to any other such value.
fn same(kept: &Metric, metric: &Metric) -> bool {
    let is_no_number = |m: &Metric| m.value.number().is_none_or(f64::is_nan);
    kept == metric || (is_no_number(kept) && is_no_number(metric))
}
