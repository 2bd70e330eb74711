//! Notes on the verdicts of a cell: other differences, settings that cannot act, and trials that ran out of memory.

mod deaths;
mod differences;
mod inert;

use std::collections::{BTreeSet, HashMap, HashSet};

use pagetide_record::{ArenaKind, Record};
use pagetide_store::Store;
use pagetide_verdict::Verdict;
use serde::Serialize;

pub use deaths::Deaths;
pub use differences::{Comparability, Kind, OPTION, OtherDifference};
pub use inert::{InertSetting, Workload, cannot_act, cannot_differ};

use crate::comparison::{Cell, Comparison, Overall, Side};
use crate::error::CompareError;
use crate::input::Input;

/// Notes on the comparison of one column with the baseline in one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ColumnNotes {
    /// Index of the cell in [`Comparison::cells`].
    pub cell: usize,
    /// Index of the column in [`Comparison::columns`].
    pub column: usize,
    /// Differences between the column and the baseline other than the intended one.
    pub also: Vec<OtherDifference>,
    /// Names of values that at least one of the records does not contain. A difference in them would not be detected.
    pub unknown: Vec<&'static str>,
    /// Settings of a variant that cannot have had an effect.
    pub inert: Vec<InertSetting>,
    /// Number of trials that ran out of memory, with a test of the difference; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deaths: Option<Deaths>,
}

impl ColumnNotes {
    /// Returns the differences that were not intended and may have changed the result.
    pub fn confounding(&self) -> impl Iterator<Item = &OtherDifference> {
        let also = self.also.iter();
        also.filter(|also| also.standing == Comparability::Confounds)
    }
}

/// What the user intended to differ between the baseline and another side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Everything that a variant can set.
    #[default]
    Variant,
    /// Only the kernel, because the user named two kernel releases.
    Kernel,
}

/// Records of the current cell; each is read from the store only once.
struct Records<'a> {
    store: &'a Store,
    read: HashMap<String, Record>,
}

impl Records<'_> {
    fn get(&mut self, id: &str) -> Result<&Record, CompareError> {
        if !self.read.contains_key(id) {
            let record = self.store.load(id)?.into_record();
            self.read.insert(id.to_owned(), record);
        }
        Ok(&self.read[id])
    }
}

/// For each cell and column, compares one record of the baseline with one of the column, and reads every trial that ran
/// out of memory. Adds the notes to `comparison`, and withdraws verdicts that they put in doubt.
pub(crate) fn look(
    store: &Store,
    input: &Input,
    comparison: &mut Comparison,
) -> Result<(), CompareError> {
    let mut records = Records {
        store,
        read: HashMap::new(),
    };
    let mut all = Vec::new();
    for (place, cell) in comparison.cells.iter_mut().enumerate() {
        for side in &mut cell.sides {
            deaths::mark(side, &mut |id| records.get(id).cloned())?;
        }
        for column in 1..cell.sides.len() {
            let sides = [&cell.sides[0], &cell.sides[column]];
            let Some([a, b]) = likely_pair(sides) else {
                continue;
            };
            let mut notes = ColumnNotes {
                cell: place,
                column,
                ..ColumnNotes::default()
            };
            match (records.get(&a).cloned(), records.get(&b).cloned()) {
                (Ok(a), Ok(b)) => {
                    let pair = [a, b];
                    let found = differences::contrast(&pair, input);
                    notes.also = found.also;
                    notes.unknown = found.unknown;
                    notes.inert = inert::of_records(&pair, cell.equal_trials(column));
                }
                // The comparison itself needs only the index; `store verify` reports what is wrong with the file.
                _ => notes.unknown = vec!["all of it (the file of a record cannot be read)"],
            }
            notes.deaths = deaths::of_sides(sides, &mut |id| records.get(id).cloned())?;
            all.push(notes);
        }
        // No other cell needs the records of this cell.
        records.read.clear();
    }
    deaths::decide(&mut all, comparison.alpha);
    all.retain(|notes| {
        let ColumnNotes { also, inert, .. } = notes;
        !also.is_empty() || !inert.is_empty() || !notes.unknown.is_empty() || notes.deaths.is_some()
    });
    for notes in &all {
        judge_anew(&mut comparison.cells[notes.cell], notes);
    }
    comparison.notes = all;
    Ok(())
}

/// Returns the record IDs of one trial of each side: of two valid trials with the same seed if there are any, otherwise
/// of the first valid trial of each side, or its first invalid one if none is valid. `None` if a side has no trial.
fn likely_pair(sides: [&Side; 2]) -> Option<[String; 2]> {
    let seeds: BTreeSet<u64> = sides[1].trials.iter().map(|trial| trial.seed).collect();
    let common = sides[0].trials.iter().find(|t| seeds.contains(&t.seed));
    if let Some(trial) = common {
        let other = sides[1].trials.iter().find(|t| t.seed == trial.seed)?;
        return Some([trial.record.clone(), other.record.clone()]);
    }
    let any = |side: &Side| {
        let valid = side.trials.first().map(|trial| &trial.record);
        valid
            .or(side.invalid.first().map(|trial| &trial.record))
            .cloned()
    };
    Some([any(sides[0])?, any(sides[1])?])
}

/// Withdraws verdicts that an unintended difference may have caused. If a metric cannot be judged because trials ran
/// out of memory, gives this as the reason.
fn judge_anew(cell: &mut Cell, notes: &ColumnNotes) {
    let by: Vec<String> = notes.confounding().map(ToString::to_string).collect();
    let died = notes.deaths.as_ref().map(|deaths| deaths.died);
    for row in &mut cell.metrics {
        let Some(Some(judgement)) = row.judgements.get_mut(notes.column - 1) else {
            continue;
        };
        match &judgement.verdict {
            Verdict::Improved | Verdict::Regressed | Verdict::Changed | Verdict::Equivalent
                if !by.is_empty() =>
            {
                judgement.verdict = Verdict::Confounded { by: by.join("; ") };
            }
            Verdict::Invalid { .. } if died.is_some() => {
                judgement.verdict = Verdict::Invalid {
                    reason: "too few trials are left, for others died".to_owned(),
                };
            }
            _ => {}
        }
    }
}

/// Returns the overall verdict on deaths and on the primary metrics, or on all metrics if none is primary. If one side
/// ran out of memory significantly more often, the verdict on this difference replaces the invalid and inconclusive
/// verdicts on metrics in the same cell and column.
pub(crate) fn overall(comparison: &Comparison) -> Overall {
    let decides = |notes: &&ColumnNotes| {
        let deaths = notes.deaths.as_ref();
        deaths.is_some_and(|deaths| deaths.verdict.is_difference())
    };
    let decided = comparison.notes.iter().filter(decides);
    let replaced: HashSet<(usize, usize)> = decided.map(|b| (b.cell, b.column)).collect();
    let any_primary = comparison
        .cells
        .iter()
        .any(|cell| cell.metrics.iter().any(|row| row.primary));
    let mut verdicts = Vec::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        for row in cell
            .metrics
            .iter()
            .filter(|row| row.primary || !any_primary)
        {
            for (column, judgement) in (1..).zip(&row.judgements) {
                let Some(judgement) = judgement else { continue };
                let open = matches!(
                    judgement.verdict,
                    Verdict::Invalid { .. } | Verdict::Inconclusive { .. }
                );
                if !(open && replaced.contains(&(place, column))) {
                    verdicts.push(&judgement.verdict);
                }
            }
        }
    }
    let deaths = comparison.notes.iter().filter_map(|b| b.deaths.as_ref());
    verdicts.extend(deaths.map(|deaths| &deaths.verdict));
    Overall::of(verdicts)
}

/// True if the record is from the exact arena, which records everything that could differ.
fn is_exact(record: &Record) -> bool {
    record.subject.arena.kind == ArenaKind::Exact
}
