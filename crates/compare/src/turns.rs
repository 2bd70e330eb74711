//! Tests whether imported variants alternated. If one was recorded after the other, drift over time looks like a
//! difference between variants.

use std::collections::BTreeMap;

use pagetide_quantity::Nanos;
use pagetide_store::Pairing;

use crate::comparison::Caution;
use crate::input::{Input, TrialRow};

/// Minimum number of pairs from which the same order in all pairs is not regarded as chance. With six pairs, the
/// probability is 1 in 32.
const MIN_ORDERED: usize = 6;

/// Order in time of the trials of two columns.
enum Order {
    /// The start time of at least one trial is unknown, or a column has no trial.
    Unknown,
    /// The columns did not alternate, so one counts as recorded after the other.
    Sessions,
    /// The columns alternated. `Some(true)` if the baseline ran first in every one of six or more pairs, `Some(false)`
    /// if it ran second in every one; otherwise `None`.
    Turns(Option<bool>),
}

/// True if the import states pairs, and trials of a column may be paired with those of the baseline: the columns
/// alternated, the user stated this in place of unknown start times, or pairs do not depend on time (`lasting`).
pub(crate) fn pairs(imported: &Pairing, input: &Input, column: usize) -> bool {
    imported.paired_by.is_some()
        && match order(imported, input, column) {
            Order::Turns(_) => true,
            Order::Unknown => imported.lasting || imported.interleaved,
            Order::Sessions => imported.lasting,
        }
}

/// Returns a warning about the order in which the trials of a column and of the baseline were recorded; `None` if they
/// alternated and neither was always first, or if start times are unknown and the user stated that they alternated.
pub(crate) fn caution(imported: &Pairing, input: &Input, column: usize) -> Option<Caution> {
    let [a, b] = [0, column].map(|column| input.columns[column].name.clone());
    match order(imported, input, column) {
        Order::Turns(None) => None,
        Order::Turns(Some(true)) => Some(Caution::OneOrder {
            first: a,
            second: b,
        }),
        Order::Turns(Some(false)) => Some(Caution::OneOrder {
            first: b,
            second: a,
        }),
        // Known start times take precedence over what the user states about the order.
        Order::Unknown if imported.interleaved => None,
        Order::Unknown => Some(Caution::UnknownOrder { a, b }),
        Order::Sessions => Some(Caution::Sessions { a, b }),
    }
}

fn order(imported: &Pairing, input: &Input, column: usize) -> Order {
    let sides = [0, column].map(|column| &input.columns[column].trials);
    if sides.iter().any(|side| side.is_empty())
        || sides
            .iter()
            .flat_map(|side| side.iter())
            .any(|trial| trial.row.started == Nanos(0))
    {
        return Order::Unknown;
    }
    let mut cells: BTreeMap<usize, [Vec<&TrialRow>; 2]> = BTreeMap::new();
    for (side, trials) in sides.into_iter().enumerate() {
        for trial in trials {
            cells.entry(trial.cell).or_default()[side].push(trial);
        }
    }
    let mut first = Vec::new();
    let mut changes = Changes::default();
    for of_cell in cells.into_values() {
        if of_cell.iter().any(Vec::is_empty) {
            continue;
        }
        if imported.paired_by.is_some() {
            let Some(firsts) = blocks(&of_cell) else {
                return Order::Sessions;
            };
            first.extend(firsts);
        } else {
            changes.add(&of_cell);
        }
    }
    if !changes.are_by_chance() {
        return Order::Sessions;
    }
    let all = |first: &[bool], side| first.iter().all(|of_pair| *of_pair == side);
    match first.len() {
        pairs if pairs < MIN_ORDERED => Order::Turns(None),
        _ if all(&first, true) => Order::Turns(Some(true)),
        _ if all(&first, false) => Order::Turns(Some(false)),
        _ => Order::Turns(None),
    }
}

/// Returns, for each sampling unit of both sides in the order of time, true if the baseline's trial started first.
/// `None` if two units overlap in time, or if no unit is on both sides.
fn blocks(sides: &[Vec<&TrialRow>; 2]) -> Option<Vec<bool>> {
    // First and last start time of each sampling unit on each side.
    let mut units: BTreeMap<u32, [Option<[Nanos; 2]>; 2]> = BTreeMap::new();
    for (side, trials) in sides.iter().enumerate() {
        for trial in trials {
            let started = trial.row.started;
            let span = &mut units.entry(trial.unit).or_default()[side];
            let [from, to] = span.unwrap_or([started; 2]);
            *span = Some([from.min(started), to.max(started)]);
        }
    }
    let mut spans: Vec<([Nanos; 2], bool)> = units
        .into_values()
        .filter_map(|[a, b]| {
            let (a, b) = (a?, b?);
            Some(([a[0].min(b[0]), a[1].max(b[1])], a[0] < b[0]))
        })
        .collect();
    spans.sort_unstable();
    let disjoint = spans.windows(2).all(|pair| pair[0].0[1] < pair[1].0[0]);
    (disjoint && !spans.is_empty()).then(|| spans.into_iter().map(|(_, first)| first).collect())
}

/// Number of changes from one side to the other when trials are sorted by time, over all cells; with the mean and the
/// variance of that number in random order (Wald and Wolfowitz 1940).
#[derive(Default)]
struct Changes {
    seen: f64,
    mean: f64,
    variance: f64,
}

impl Changes {
    fn add(&mut self, sides: &[Vec<&TrialRow>; 2]) {
        let mut all: Vec<(Nanos, bool)> = sides
            .iter()
            .zip([true, false])
            .flat_map(|(side, own)| side.iter().map(move |trial| (trial.row.started, own)))
            .collect();
        all.sort_unstable();
        self.seen += all.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as f64;
        let [n, m] = [&sides[0], &sides[1]].map(|side| side.len() as f64);
        let mean = 2.0 * n * m / (n + m);
        self.mean += mean;
        self.variance += (mean * (mean - 1.0) / (n + m - 1.0).max(1.0)).max(0.0);
    }

    /// True if the number of changes is not more than one standard deviation below the number expected in random order.
    fn are_by_chance(&self) -> bool {
        self.seen >= self.mean - self.variance.sqrt()
    }
}
