//! Compares kinds of swap: the time, bytes written to disks, memory used for compressed pages, and deaths of each kind.
//! Also finds the front: the kinds that no other kind beats. A kind beats another if it is significantly better in one
//! of these and as good in the others.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Direction, Unit};
use pagetide_record::{MemorySpec, Subject, SwapSpec};
use pagetide_verdict::Verdict;
use pagetide_verdict::choice::{SAME, beats};
use serde::Serialize;

use crate::comparison::{Cell, Comparison, MetricRow};
use crate::input::TrialRow;

/// Name of the metric for the bytes written to swap areas on disks.
const WRITTEN: &str = "swap-written";
/// Name of the metric for the peak memory that zram and zswap held for compressed pages.
const MEMORY: &str = "swap-memory";

/// Swap of one side, in a cell whose sides have different swap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SideSwap {
    /// Kind of swap of this side.
    pub kind: SwapSpec,
    /// Size of this side's swap device.
    pub size: Bytes,
    /// Words that distinguish this side from the others, in the form of the options `swap=` and `swap-size=`.
    pub words: String,
}

/// Comparison of the kinds of swap of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kinds {
    /// Index of the cell in [`Comparison::cells`].
    pub cell: usize,
    /// Name of the metric that is compared as the time of a kind: the first primary time, or else the first primary
    /// metric. `None` if no metric is primary.
    pub metric: Option<String>,
    /// Unit of the metric in `metric`.
    pub unit: Unit,
    /// Whether lower or higher values of the metric in `metric` are better.
    pub direction: Direction,
    /// One row for each column that has trials in this cell.
    pub kinds: Vec<KindRow>,
}

/// Costs and deaths of one kind of swap in a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindRow {
    /// Index of the column in [`Comparison::columns`].
    pub column: usize,
    /// Kind of swap in this column.
    pub kind: SwapSpec,
    /// Size of the swap device in this column.
    pub size: Bytes,
    /// Value of the metric named in [`Kinds::metric`]; `None` if it was not measured.
    pub time: Option<Cost>,
    /// Bytes written to swap areas on disks; `None` if they were not measured.
    pub written: Option<Cost>,
    /// Peak memory that zram and zswap held for compressed pages, in bytes; `None` if it was not measured.
    pub memory: Option<Cost>,
    /// Number of trials that died for lack of memory.
    pub died: u64,
    /// Number of trials that are valid or died for lack of memory.
    pub trials: u64,
    /// Whether trials died for lack of memory more often than trials of the baseline. `None` for the baseline itself,
    /// and if no trial of the two columns died.
    pub deaths: Option<Verdict>,
    /// Indices of the columns with a better kind of swap: significantly better in one cost and as good in the others,
    /// or without deaths while trials of this one died or it has no trial.
    #[serde(rename = "beaten_by")]
    pub dominated_by: Vec<usize>,
    /// True if `dominated_by` is empty, and this kind has trials of which none died.
    pub is_on_front: bool,
}

/// One cost of a kind of swap: time, bytes written or memory held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Mean of the metric over the valid trials, in its unit.
    pub mean: f64,
    /// Verdict on the difference to the baseline; `None` for the baseline itself, and if the cost was not judged.
    pub verdict: Option<Verdict>,
}

/// Kinds of cost of a kind of swap, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostKind {
    /// The metric named in [`Kinds::metric`], which is usually a time.
    Time,
    /// Bytes written to swap areas on disks.
    Written,
    /// Peak memory held for compressed pages.
    Memory,
}

impl CostKind {
    /// All costs, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Time, Self::Written, Self::Memory];
}

impl KindRow {
    /// Returns the cost `of` of this kind of swap; `None` if it was not measured.
    pub fn cost(&self, of: CostKind) -> Option<&Cost> {
        match of {
            CostKind::Time => self.time.as_ref(),
            CostKind::Written => self.written.as_ref(),
            CostKind::Memory => self.memory.as_ref(),
        }
    }
}

impl Kinds {
    /// Returns the columns of the kinds on the front whose cost is the smallest, or at most 1 % larger. Empty if the
    /// cost was measured for fewer than two kinds on the front, or if it is equal for all of them.
    pub fn best(&self, of: CostKind) -> Vec<usize> {
        let front = self.kinds.iter().filter(|kind| kind.is_on_front);
        let values: Vec<(usize, f64)> = front
            .filter_map(|kind| Some((kind.column, self.as_cost(of, kind.cost(of)?.mean))))
            .collect();
        let least = values.iter().map(|(_, value)| *value);
        let least = least.fold(f64::INFINITY, f64::min);
        let is_best = |value: f64| value <= least + SAME * least.abs();
        if values.len() < 2 || values.iter().all(|(_, value)| is_best(*value)) {
            return Vec::new();
        }
        let best = values.into_iter().filter(|(_, value)| is_best(*value));
        best.map(|(column, _)| column).collect()
    }

    /// Converts a value into a cost, so that smaller is better.
    fn as_cost(&self, of: CostKind, value: f64) -> f64 {
        match (of, self.direction) {
            (CostKind::Time, Direction::Higher) => 1.0 / value,
            _ => value,
        }
    }
}

/// Returns the swap of each side of a cell. `None` for every side if all sides have the same swap, and for a side
/// without trials.
pub(crate) fn of_sides(trials: &[Vec<TrialRow>]) -> Vec<Option<SideSwap>> {
    let subjects: Vec<Option<&Subject>> = trials
        .iter()
        .map(|trials| Some(&trials.first()?.row.cell.subject))
        .collect();
    let known = || subjects.iter().flatten();
    let first = known().next();
    let differs = |is_same: &dyn Fn(&Subject, &Subject) -> bool| {
        known().any(|one| first.is_some_and(|first| !is_same(first, one)))
    };
    let kinds = differs(&|a, b| a.swap == b.swap);
    let sizes = differs(&|a, b| a.swap_size == b.swap_size);
    let of_side = |one: Option<&Subject>| {
        let subject = one.filter(|_| kinds || sizes)?;
        let (kind, size) = (subject.swap, subject.swap_size);
        let mut words = Vec::new();
        if kinds {
            words.push(format!("swap={}", subject.swap_label()));
        }
        if sizes && size.0 > 0 {
            words.push(format!("swap-size={}", MemorySpec::Free(size)));
        }
        Some(SideSwap {
            kind,
            size,
            words: words.join(" "),
        })
    };
    subjects.into_iter().map(of_side).collect()
}

/// Returns the comparison of the kinds of swap, for each cell whose sides have different swap. Must be called after
/// judgements and deaths have been added to `comparison`.
pub(crate) fn kinds(comparison: &Comparison) -> Vec<Kinds> {
    (0..comparison.cells.len())
        .filter_map(|cell| of_cell(comparison, cell))
        .collect()
}

fn of_cell(comparison: &Comparison, place: usize) -> Option<Kinds> {
    let cell = &comparison.cells[place];
    let own: Vec<(usize, &SideSwap)> = (0..)
        .zip(&cell.sides)
        .filter_map(|(column, side)| Some((column, side.swap.as_ref()?)))
        .collect();
    if own.len() < 2 {
        return None;
    }
    let named = |name: &str| cell.metrics.iter().find(|row| row.name == name);
    let mut primaries = cell.metrics.iter().filter(|row| row.primary);
    let time = primaries
        .clone()
        .find(|row| row.unit == Unit::Nanos)
        .or_else(|| primaries.next());
    let rows = [time, named(WRITTEN), named(MEMORY)];
    let mut kinds: Vec<KindRow> = own
        .into_iter()
        .map(|(column, swap)| {
            let [time, written, memory] = rows.map(|row| cost(row?, column));
            let (died, trials, deaths) = deaths(comparison, place, column);
            KindRow {
                column,
                kind: swap.kind,
                size: swap.size,
                time,
                written,
                memory,
                died,
                trials,
                deaths,
                dominated_by: Vec::new(),
                is_on_front: false,
            }
        })
        .collect();
    let does_die = |kind: &KindRow| kind.died > 0 || kind.trials == 0;
    for at in 0..kinds.len() {
        let beats_it = |other: &&KindRow| match (does_die(other), does_die(&kinds[at])) {
            (false, true) => true,
            (true, false) => false,
            _ => {
                let costs = costs(cell, rows, [other.column, kinds[at].column]);
                other.column != kinds[at].column && beats(&costs[0], &costs[1])
            }
        };
        let by: Vec<usize> = kinds.iter().filter(beats_it).map(|k| k.column).collect();
        kinds[at].is_on_front = by.is_empty() && !does_die(&kinds[at]);
        kinds[at].dominated_by = by;
    }
    Some(Kinds {
        cell: place,
        metric: time.map(|row| row.name.clone()),
        unit: time.map_or(Unit::Nanos, |row| row.unit),
        direction: time.map_or(Direction::Lower, |row| row.direction),
        kinds,
    })
}

fn cost(row: &MetricRow, column: usize) -> Option<Cost> {
    let judgement = column
        .checked_sub(1)
        .and_then(|at| row.judgements.get(at)?.as_ref());
    Some(Cost {
        mean: row.values.get(column)?.mean()?,
        verdict: judgement.map(|judgement| judgement.verdict.clone()),
    })
}

/// Returns for a column the number of trials that died, the number of trials that are valid or died, and the verdict on
/// deaths against the baseline.
fn deaths(comparison: &Comparison, cell: usize, column: usize) -> (u64, u64, Option<Verdict>) {
    let valid = comparison.cells[cell].sides[column].trials.len() as u64;
    let (side, found) = match column {
        0 => {
            let mut others = 1..comparison.columns.len();
            (0, others.find_map(|other| comparison.deaths(cell, other)))
        }
        _ => (1, comparison.deaths(cell, column)),
    };
    match found {
        None => (0, valid, None),
        Some(deaths) => (
            deaths.died[side],
            deaths.trials[side],
            (column > 0).then(|| deaths.verdict.clone()),
        ),
    }
}

/// Returns the costs of two columns, one list for each metric in `rows`. A list has a value for each seed and
/// repetition that is valid in both columns. If higher values of a metric are better, its values are inverted.
fn costs(cell: &Cell, rows: [Option<&MetricRow>; 3], columns: [usize; 2]) -> [Vec<Vec<f64>>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    for row in rows {
        let of_column = |column: usize| -> BTreeMap<(u64, u32), f64> {
            let values = row.and_then(|row| row.values.get(column));
            let values = values.map_or(&[][..], |values| &values.values);
            let trials = &cell.sides[column].trials;
            let value = |(at, value): &(usize, f64)| {
                let trial = trials.get(*at)?;
                let is_higher = row.is_some_and(|row| row.direction == Direction::Higher);
                let cost = if is_higher { 1.0 / value } else { *value };
                Some(((trial.seed, trial.repetition), cost))
            };
            values.iter().filter_map(value).collect()
        };
        let [a, b] = columns.map(of_column);
        let common = a.iter().filter_map(|(key, a)| Some((*a, *b.get(key)?)));
        let (a, b) = common.unzip();
        all[0].push(a);
        all[1].push(b);
    }
    all
}
