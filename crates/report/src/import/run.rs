//! Runs of other tools, and their conversion to records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pagetide_quantity::{Direction, Metric, Nanos, Unit, Value};
use pagetide_record::file::MAX_VALUE;
use pagetide_record::{Invalid, KernelId, Variant};

use super::file::Text;
use super::tool::Tool;
use super::{Batch, ImportError, MAX_METRICS, MAX_RUNS, Source, record};
use crate::draw::clean;

/// Name of the key that pairs runs, unless the variants evidently took no turns.
const BY_ORDER: &str = "order of the runs";

/// A metric that a tool is known to write.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// Name of the metric in the tool's output.
    pub key: &'static str,
    /// Name of the metric in records.
    pub name: &'static str,
    /// Unit of the metric in records.
    pub unit: Unit,
    /// Factor from the number in the tool's output to the unit in records.
    pub factor: f64,
    /// Direction in which the metric improves.
    pub direction: Direction,
    /// True if the metric is primary, so that it decides the overall verdict.
    pub primary: bool,
}

impl Known {
    /// Creates a metric that is not primary.
    pub const fn new(
        key: &'static str,
        name: &'static str,
        unit: Unit,
        factor: f64,
        direction: Direction,
    ) -> Self {
        Self {
            key,
            name,
            unit,
            factor,
            direction,
            primary: false,
        }
    }

    /// Returns the same metric as a primary metric.
    pub const fn primary(self) -> Self {
        Self {
            primary: true,
            ..self
        }
    }

    /// Returns the metric whose name in the tool's output is `key`; `None` if the table does not contain it.
    pub fn find(table: &[Self], key: &str) -> Option<Self> {
        table.iter().copied().find(|known| known.key == key)
    }
}

/// One run of a workload, read from a file.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Name of the variant; empty if the file does not name the variant.
    pub variant: String,
    /// Name of the workload.
    pub scenario: String,
    /// Parameters of the workload.
    pub params: BTreeMap<String, String>,
    /// Release of the kernel; empty if unknown.
    pub kernel: String,
    /// Start time in nanoseconds since 1970; 0 if unknown.
    pub started: Nanos,
    /// Metrics of the run.
    pub metrics: Vec<Metric>,
    /// Reasons why the run must not be used; empty if it is valid.
    pub invalid: Vec<Invalid>,
}

impl Run {
    /// Creates a run of this workload without metrics.
    pub fn of(scenario: impl Into<String>) -> Self {
        Self {
            scenario: scenario.into(),
            ..Self::default()
        }
    }

    /// Adds a metric with a number from the tool's output, under its name in records. Fails as [`Self::add_as`] does.
    pub fn add(
        &mut self,
        file: &Text<'_>,
        line: usize,
        known: &Known,
        number: f64,
    ) -> Result<(), ImportError> {
        self.add_as(file, line, known, known.name, number)
    }

    /// Adds a metric under the name `name`, with the unit and direction of `known`. `number` is that of the tool's
    /// output; it is converted to the unit. Fails if a record cannot hold the number, and as [`Self::push`] does.
    pub fn add_as(
        &mut self,
        file: &Text<'_>,
        line: usize,
        known: &Known,
        name: &str,
        number: f64,
    ) -> Result<(), ImportError> {
        let value = number * known.factor;
        if value.is_nan() || value.abs() > MAX_VALUE {
            return Err(file.bad(
                line,
                format_args!(
                    "{} is too large a number for its unit",
                    clean(name, 60, false)
                ),
            ));
        }
        self.push(file, line, known, name, Value::Number(value))
    }

    /// Adds a metric with a number in the unit of `known`, or with the reason why it has no number. Fails if the run
    /// already has this metric or [`MAX_METRICS`] metrics.
    pub fn push(
        &mut self,
        file: &Text<'_>,
        line: usize,
        known: &Known,
        name: &str,
        value: Value,
    ) -> Result<(), ImportError> {
        if self.metrics.iter().any(|metric| metric.name == name) {
            return Err(file.bad(
                line,
                format_args!("{} is there twice in one run", clean(name, 60, false)),
            ));
        }
        if self.metrics.len() >= MAX_METRICS {
            return Err(file.bad(line, format_args!("it has more than {MAX_METRICS} metrics")));
        }
        self.metrics.push(Metric {
            name: name.to_owned(),
            unit: known.unit,
            direction: known.direction,
            primary: known.primary,
            value,
        });
        Ok(())
    }

    /// Returns the parts that all runs of a cell share: workload and parameters.
    fn cell(&self) -> (String, BTreeMap<String, String>) {
        (self.scenario.clone(), self.params.clone())
    }
}

/// Adds a run to the runs of a file. Fails if there would be more than [`MAX_RUNS`].
pub(super) fn push(file: &Text<'_>, runs: &mut Vec<Run>, run: Run) -> Result<(), ImportError> {
    if runs.len() >= MAX_RUNS {
        return Err(ImportError::TooMany {
            path: file.path.to_owned(),
            what: "runs",
            limit: MAX_RUNS,
        });
    }
    runs.push(run);
    Ok(())
}

/// The runs of one file, with the argument that named the file.
pub(super) struct Found<'a> {
    /// The argument that named the file or its folder.
    pub source: &'a Source,
    /// Path of the file.
    pub path: PathBuf,
    /// Runs in the order of the file.
    pub runs: Vec<Run>,
}

/// Returns the name of a variant derived from a path: the name of the folder, or the name of the file without its
/// extension.
pub(super) fn label(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = if whole.is_dir() {
        whole.file_name()
    } else {
        whole.file_stem()
    };
    name.map_or_else(
        || "run".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Sets the variant of each run: the name given by the user, otherwise the name in the file, otherwise the name of the
/// argument. Fails if the user's name would stand for several variants of a file, or if two arguments have one name.
fn named(found: &mut [Found<'_>]) -> Result<(), ImportError> {
    let mut labels: BTreeMap<String, &Path> = BTreeMap::new();
    for of_file in found {
        let own: BTreeSet<&str> = of_file.runs.iter().map(|run| &*run.variant).collect();
        let name = if let Some(name) = &of_file.source.variant {
            if own.len() > 1 {
                return Err(ImportError::SeveralVariants {
                    path: of_file.path.clone(),
                    variants: own.len(),
                    name: clean(name, 60, false),
                });
            }
            name.clone()
        } else if own.contains("") {
            let name = label(&of_file.source.path);
            let path = &*of_file.source.path;
            if *labels.entry(name.clone()).or_insert(path) != path {
                return Err(ImportError::OneName {
                    path: path.to_owned(),
                    name: clean(&name, 60, false),
                });
            }
            name
        } else {
            continue;
        };
        let all = of_file.source.variant.is_some();
        for run in &mut of_file.runs {
            if all || run.variant.is_empty() {
                run.variant.clone_from(&name);
            }
        }
    }
    Ok(())
}

/// Converts runs to records. The runs of each cell are numbered separately for each variant: by start time if all start
/// times are known, otherwise in the order of reading. Runs with equal numbers are pairs, unless a tool made several
/// runs of a variant in a row, or the variants of a cell have different numbers of runs.
pub(super) fn batch(tool: &Tool, mut found: Vec<Found<'_>>) -> Result<Batch, ImportError> {
    named(&mut found)?;
    let mut in_a_row = None;
    let mut all: Vec<Run> = Vec::new();
    for of_file in found {
        if tool.in_a_row {
            let mut seen = BTreeSet::new();
            let again = of_file
                .runs
                .iter()
                .any(|run| !seen.insert((run.cell(), run.variant.clone())));
            if again {
                in_a_row.get_or_insert(of_file.path);
            }
        }
        all.extend(of_file.runs);
        if all.len() > MAX_RUNS {
            return Err(ImportError::TooMany {
                path: of_file.source.path.clone(),
                what: "runs",
                limit: MAX_RUNS,
            });
        }
    }
    if all.iter().all(|run| run.started > Nanos(0)) {
        all.sort_by_key(|run| run.started);
    }
    let mut counts: BTreeMap<_, BTreeMap<String, u64>> = BTreeMap::new();
    let mut records = Vec::new();
    for run in all {
        let count = counts
            .entry(run.cell())
            .or_default()
            .entry(run.variant.clone())
            .or_default();
        *count += 1;
        let variant = Variant {
            name: run.variant,
            kernel: KernelId {
                release: run.kernel,
                ..KernelId::default()
            },
            ..Variant::default()
        };
        let mut record = record(tool.name, &run.scenario, variant, *count);
        record.subject.params = run.params;
        record.wall.started = run.started;
        tool.name.clone_into(&mut record.wall.campaign);
        record.results.metrics = run.metrics;
        record.results.invalid = run.invalid;
        records.push(record);
    }
    let is_even = counts.values().all(|of_cell| {
        let all: BTreeSet<&u64> = of_cell.values().collect();
        all.len() == 1
    });
    Ok(Batch {
        blocks: records
            .iter()
            .map(|record| record.subject.seed.to_string())
            .collect(),
        records,
        paired_by: (is_even && in_a_row.is_none()).then(|| BY_ORDER.to_owned()),
        // Equal numbers in two sessions do not make a pair.
        lasting: false,
        first: "the first that was named, as no times are known",
        in_a_row,
    })
}
