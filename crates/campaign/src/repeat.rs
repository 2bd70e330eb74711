//! Repeats the trial of a record, and compares the results.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use pagetide_arena::{Arena, ArenaError, PreparedTrial, Progress, Trial};
use pagetide_compare::profiled::has_references;
use pagetide_compare::{Change, Divergence, differences, first_divergence, largest_change};
use pagetide_outside::remedy;
use pagetide_quantity::command::in_backticks;
use pagetide_quantity::{Metric, Unit};
use pagetide_record::{Maker, Record, RecordWriter, Subject};
use pagetide_store::{Store, StoreError, short};
use serde::Serialize;
use tempfile::TempDir;

use crate::command::maker;

/// Why a trial cannot be repeated.
#[derive(Debug, thiserror::Error)]
pub enum RepeatError {
    /// The record's kernel is not in the cache, and the arena cannot prepare the trial with the kernel's source either.
    #[error("kernel {release} of the record is no longer available")]
    NoKernel {
        /// Release of the record's kernel.
        release: String,
        /// The arena's reason.
        source: ArenaError,
    },
    /// The kernel that the record names is now another kernel than the one that ran.
    #[error(
        "{name} stands for another kernel today than the {release} of the record: add that one with {}",
        in_backticks("kernel add KERNEL")
    )]
    OtherKernel {
        /// Name of the kernel.
        name: String,
        /// Release of the record's kernel.
        release: String,
    },
    /// The trial was stopped.
    #[error("stopped before the trial's end")]
    Stopped,
    /// The arena could not prepare or run a trial.
    #[error(transparent)]
    Arena(ArenaError),
    /// Reading or writing the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No folder can be made for the repetition's record file.
    #[error(
        "the store can only be read, and making a folder for temporary files stopped ({source}): {}",
        remedy(.source, Some("TMPDIR"))
    )]
    Elsewhere {
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A temporary file cannot be written or read.
    #[error("the record of a repetition needs a temporary file, which fails: {source}")]
    Temporary {
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The repetition's record file cannot be removed.
    #[error("removing {path}")]
    Remove {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// Result of repeating the trial of a record.
#[derive(Clone, Debug, Serialize)]
pub struct Repetitions {
    /// ID of the record.
    pub record: String,
    /// Digest of the record's results.
    pub digest: String,
    /// Number of repetitions.
    pub times: u32,
    /// Number of repetitions whose results were bit-identical to the record's; 0 in an arena with noise.
    pub identical: u32,
    /// A sentence for each difference between the conditions of the record and those of the repetitions.
    pub notes: Vec<String>,
    /// The first difference in the first repetition whose results differ; `None` if all are identical, and in an arena
    /// with noise.
    pub first_difference: Option<Divergence>,
    /// The primary metric that changed by the largest ratio in the repetition of `first_difference`; `None` if there is
    /// none, or if no primary metric is above zero in both records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<Change>,
    /// Range of the repetitions' values, for each primary metric, and for some counts and processor times. Empty for an
    /// arena without noise, where repetitions should be identical.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spreads: Vec<Spread>,
}

/// Range of a metric's values in the repetitions of a trial, with the value in the record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Name of the metric.
    pub metric: String,
    /// Value in the record.
    pub original: f64,
    /// Minimum of the values in the repetitions; infinity if no repetition has a value.
    pub least: f64,
    /// Maximum of the values in the repetitions; minus infinity if no repetition has a value.
    pub most: f64,
    /// Unit of the values.
    pub unit: Unit,
    /// Largest absolute difference between a repetition and the record, relative to the record; `None` if the record's
    /// value is 0, or if no repetition has a value.
    pub apart: Option<f64>,
}

impl Spread {
    /// Creates empty ranges for a record: for its primary metrics, and for the metrics in [`TOLD`].
    fn of(record: &Record) -> Vec<Self> {
        let is_reported = |metric: &&Metric| metric.primary || TOLD.contains(&metric.name.as_str());
        let metrics = record.results.metrics.iter().filter(is_reported);
        let spread = |metric: &Metric| {
            let value = metric.value.number()?;
            Some(Self {
                metric: metric.name.clone(),
                original: value,
                least: f64::INFINITY,
                most: f64::NEG_INFINITY,
                unit: metric.unit,
                apart: None,
            })
        };
        metrics.filter_map(spread).collect()
    }

    /// Adds the value of another repetition of the trial.
    fn add(&mut self, again: &Record) {
        let mut metrics = again.results.metrics.iter();
        let same = metrics.find(|metric| metric.name == self.metric);
        let Some(value) = same.and_then(|metric| metric.value.number()) else {
            return;
        };
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        if self.original != 0.0 {
            let far = (value - self.original).abs() / self.original.abs();
            self.apart = Some(self.apart.map_or(far, |most| most.max(far)));
        }
    }
}

/// Names of metrics whose range is shown even if they are not primary.
const TOLD: [&str; 5] = [
    "major-faults",
    "swapped-in",
    "swapped-out",
    "user",
    "system",
];

impl Display for Repetitions {
    /// Writes one line for each item, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.spreads.is_empty() {
            return self.write_spreads(f);
        }
        write!(
            f,
            "{} of {} repetitions are identical to {} (digest {})",
            self.identical,
            self.times,
            short(&self.record),
            short(&self.digest)
        )?;
        for note in &self.notes {
            write!(f, "\nnote: {note}")?;
        }
        if let Some(difference) = &self.first_difference {
            write!(f, "\nfirst difference: {difference}")?;
        }
        if let Some(largest) = &self.largest {
            write!(f, "\nlargest change of a metric that decides: {largest}")?;
        }
        Ok(())
    }
}

/// Formats a metric's value: times in milliseconds, other values as numbers.
fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanos => format!("{:.1} ms", value / 1e6),
        _ if value.fract() == 0.0 => format!("{value}"),
        _ => format!("{value:.3}"),
    }
}

impl Repetitions {
    /// Writes the ranges of the values in the repetitions of a trial with noise.
    fn write_spreads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = match self.times {
            1 => "the repetition has".to_owned(),
            many => format!("the {many} repetitions have"),
        };
        write!(
            f,
            "{} has noise, so no repetition is identical",
            short(&self.record)
        )?;
        for note in &self.notes {
            write!(f, "\nnote: {note}")?;
        }
        for spread in &self.spreads {
            let show = |value: f64| shown(spread.unit, value);
            if spread.least > spread.most {
                write!(
                    f,
                    "\n{}: {}, and no repetition has it",
                    spread.metric,
                    show(spread.original)
                )?;
                continue;
            }
            let apart = spread.apart.map_or_else(String::new, |apart| {
                format!(", at most {:.1} % apart", apart * 100.0)
            });
            write!(
                f,
                "\n{}: {} in the record, {times} {} to {}{apart}",
                spread.metric,
                show(spread.original),
                show(spread.least),
                show(spread.most),
            )?;
        }
        Ok(())
    }
}

/// Runs the trial of a record `times` times again, and compares each repetition with the record. The repetitions are
/// not kept in the store.
pub fn repeat(
    store: &Store,
    arena: &dyn Arena,
    record: &Record,
    times: u32,
    progress: &dyn Progress,
) -> Result<Repetitions, RepeatError> {
    let prepared = prepare_again(arena, &record.subject, |trial| Trial {
        references: has_references(record),
        ..trial
    })?;
    let mut all = Repetitions {
        record: record.id(),
        digest: record.digest.clone(),
        times: 0,
        identical: 0,
        notes: notes(&record.subject, prepared.subject()),
        first_difference: None,
        largest: None,
        spreads: Vec::new(),
    };
    if arena.has_noise() {
        all.spreads = Spread::of(record);
    }
    // Repetitions are not kept, so the store may be read-only.
    let elsewhere = store.is_read_only().then(tempfile::tempdir).transpose();
    let elsewhere = elsewhere.map_err(|source| RepeatError::Elsewhere { source })?;
    let incoming = store.folder().join("incoming");
    let folder = elsewhere.as_ref().map_or(&*incoming, TempDir::path);
    for _ in 0..times {
        let again = run_again(folder, arena, &prepared, maker(prepared.trial()), progress)?;
        if arena.has_noise() {
            all.spreads.iter_mut().for_each(|spread| spread.add(&again));
        } else if again.digest == record.digest {
            all.identical += 1;
        } else if all.first_difference.is_none() {
            all.first_difference = Some(first_divergence(record, &again));
            all.largest = largest_change(record, &again);
        }
        all.times += 1;
    }
    Ok(all)
}

/// Returns a sentence for each difference between the record's conditions `then` and the present conditions `now`.
fn notes(then: &Subject, now: &Subject) -> Vec<String> {
    let mut notes: Vec<String> = differences(then, now)
        .iter()
        .map(ToString::to_string)
        .collect();
    if then.arena.guest != now.arena.guest {
        notes.push(format!(
            "the guest programs differ ({} then, {} now): another guest is another trajectory, and results move with it",
            short(&then.arena.guest),
            short(&now.arena.guest)
        ));
    }
    if then.arena.cmdline != now.arena.cmdline {
        notes.push("the kernel's command line is not the same".to_owned());
    }
    notes
}

/// Prepares the trial of a record again. The kernel is looked up by its digest first, because its name may now stand
/// for a newer kernel. `change` may modify the trial before it is prepared.
pub(crate) fn prepare_again(
    arena: &dyn Arena,
    subject: &Subject,
    change: impl Fn(Trial) -> Trial,
) -> Result<PreparedTrial, RepeatError> {
    let wanted = &subject.variant.kernel;
    for name in [&wanted.digest, &wanted.source] {
        match arena.prepare(&change(Trial::again(subject, name))) {
            Ok(found) if found.subject().variant.kernel.digest == wanted.digest => {
                return Ok(found);
            }
            Err(source) if name == &wanted.source => {
                let release = wanted.release.clone();
                return Err(RepeatError::NoKernel { release, source });
            }
            Ok(_) | Err(_) => {}
        }
    }
    Err(RepeatError::OtherKernel {
        name: wanted.source.clone(),
        release: wanted.release.clone(),
    })
}

/// Runs the trial once and returns its record. Removes the record's file from `folder`.
fn run_again(
    folder: &Path,
    arena: &dyn Arena,
    prepared: &PreparedTrial,
    maker: Maker,
    progress: &dyn Progress,
) -> Result<Record, RepeatError> {
    let mut sink = RecordWriter::create(folder).map_err(StoreError::writing)?;
    let finding = match arena.run(prepared, &mut sink, progress) {
        Err(ArenaError::Stopped) => return Err(RepeatError::Stopped),
        other => other.map_err(RepeatError::Arena)?,
    };
    let mut record = prepared.record(maker, finding);
    let path = sink
        .finish(&mut record)
        .map_err(|error| RepeatError::Arena(error.into()))?;
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(record),
        Err(source) => Err(RepeatError::Remove { path, source }),
    }
}
