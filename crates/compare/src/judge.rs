//! Makes judgements from columns of records: values are paired and judged together as one family.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pagetide_quantity::{Nanos, Unit, Value};
use pagetide_record::{ArenaKind, CpusSpec, MemorySpec};
use pagetide_store::{Pairing, Store};
use pagetide_verdict::sample::UnitPair;
use pagetide_verdict::sequential::{Design, Plan, Spending};
use pagetide_verdict::{Data, Family, Judgement, Margin, MetricSample, Pair, Rule, judge_by};

use crate::comparison::{
    Caution, Cell, Column, Comparison, InterimLook, InvalidTrial, MetricRow, Overall, Side,
    TrialRef, Values,
};
use crate::doubts;
use crate::error::CompareError;
use crate::guests;
use crate::input::{Input, TrialRow};
use crate::kinds;
use crate::limit::group_limit;
use crate::notes;
use crate::once::{self, Multiple};
use crate::sizes::SMALL;
use crate::turns;

/// Turns of this length are compared with shorter ones, and all shorter ones with longer ones.
const LONG_TURN: Nanos = Nanos(40_000);
/// Error rate shared by all primary metrics of a comparison.
pub const ALPHA: f64 = 0.05;
/// Seed of the random numbers in the statistics. It is fixed, so that the same records give the same judgements.
pub(crate) const SEED: u64 = 1;
/// Maximum of the number of random sign patterns times the number of values, for all metrics of a comparison together,
/// unless [`MIN_DRAWS`] needs more.
const MAX_DRAWS: usize = 20_000_000;
/// Minimum number of random sign patterns for a metric.
const MIN_DRAWS: u32 = 999;

/// Pairs the values of the columns, judges them, and adds warnings and notes.
pub(crate) fn compare(store: &Store, input: &Input) -> Result<Comparison, CompareError> {
    let mut cautions = input.cautions.clone();
    let look = look(input);
    let until = look.as_ref().map_or(u64::MAX, |look| look.units);
    if let Some(look) = &look
        && input.planned < look.units
    {
        cautions.push(Caution::TooEarly { units: look.units });
    }
    let imported = imported(store, input)?;
    let mut columns: Vec<Column> = input
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let valid = column.trials.iter().filter(|t| t.row.is_valid()).count();
            Column {
                name: column.name.clone(),
                variant: column.trials.first().map(|t| (*t.row.variant).clone()),
                valid,
                invalid: column.trials.len() - valid,
                pending: column.pending,
                paired: is_one_campaign(input, place)
                    && imported
                        .as_ref()
                        .is_none_or(|imported| turns::pairs(imported, input, place)),
                swap: String::new(),
            }
        })
        .collect();
    let mut cells = Vec::with_capacity(input.cells.len());
    for (note, trials) in input.cells.iter().zip(by_cell(input, until)) {
        let first = trials.iter().flatten().next();
        let mut metrics = rows(store, &trials)?;
        for metric in &mut metrics {
            if let Some(primary) = &note.primary {
                metric.primary = primary.contains(&metric.name);
            }
        }
        metrics.sort_by_key(|metric| !metric.primary);
        let mut sides: Vec<Side> = trials.iter().map(|trials| side(trials)).collect();
        let swaps = kinds::of_sides(&trials);
        for ((side, swap), column) in sides.iter_mut().zip(swaps).zip(&mut columns) {
            if let (Some(swap), true) = (&swap, column.swap.is_empty()) {
                column.swap.clone_from(&swap.words);
            }
            side.swap = swap;
        }
        cells.push(Cell {
            label: note.label.clone(),
            subject: first.map(|t| t.row.cell.subject.clone()),
            sides,
            metrics,
        });
    }
    let pending = input.columns.iter().map(|column| column.pending).sum();
    if pending > 0 {
        cautions.push(Caution::Pending { trials: pending });
    }
    cautions.extend(guests::cautions(store, input)?);
    cautions.extend(doubts::caution(store, input)?);
    cautions.extend(circumstances(input));
    cautions.extend(apart(input, imported.as_ref()));
    let mut comparison = Comparison {
        campaign: input.campaign.clone(),
        baseline: input.baseline.clone(),
        columns,
        cells,
        alpha: ALPHA,
        look,
        overall: Overall::Invalid,
        cautions,
        notes: Vec::new(),
        kinds: Vec::new(),
        explanations: Vec::new(),
    };
    judge_all(&mut comparison, input)?;
    notes::look(store, input, &mut comparison)?;
    comparison.kinds = kinds::kinds(&comparison);
    comparison.overall = notes::overall(&comparison);
    Ok(comparison)
}

/// Returns the trials whose unit is below `until`, by cell and column, in the order of their seeds.
fn by_cell(input: &Input, until: u64) -> Vec<Vec<Vec<TrialRow>>> {
    let mut cells = vec![vec![Vec::new(); input.columns.len()]; input.cells.len()];
    for (place, column) in input.columns.iter().enumerate() {
        for trial in column.trials.iter().filter(|t| u64::from(t.unit) < until) {
            if let Some(cell) = cells.get_mut(trial.cell) {
                cell[place].push(trial.clone());
            }
        }
    }
    for trials in cells.iter_mut().flatten() {
        trials.sort_by_key(|t| (t.row.seed, t.unit, t.repetition, t.row.started));
    }
    cells
}

/// Returns the last interim analysis whose trials are all planned, or the first one if none is fully planned. `None` if
/// the campaign is not sequential.
fn look(input: &Input) -> Option<InterimLook> {
    let number = input
        .looks
        .iter()
        .rposition(|units| *units <= input.planned)
        .unwrap_or(0);
    input.looks.get(number).map(|units| InterimLook {
        number,
        units: *units,
        planned: input.looks.clone(),
    })
}

/// Returns warnings about how the records were made.
fn circumstances(input: &Input) -> Vec<Caution> {
    let rows = || {
        input
            .columns
            .iter()
            .flat_map(|column| &column.trials)
            .map(|t| &t.row)
    };
    let exact = || {
        let subjects = rows().map(|row| &row.cell.subject);
        subjects.filter(|subject| subject.arena.kind == ArenaKind::Exact)
    };
    let mut cautions = Vec::new();
    if input.columns.len() > 1 {
        let memory =
            exact().map(|subject| group_limit(subject).map_or(subject.memory, MemorySpec::Free));
        let smallest = memory.min_by_key(|memory| memory.bytes().0);
        let small = smallest.filter(|memory| memory.bytes().0 < SMALL.0);
        cautions.extend(small.map(|memory| Caution::Small { memory }));
        cautions.extend(one_turn(exact().map(|subject| subject.cpus)));
    }
    if exact().next().is_some() {
        cautions.push(Caution::VirtualTime);
    }
    cautions
}

/// Returns a warning if there are trials on several CPUs, and all had turns of one length.
fn one_turn(all: impl Iterator<Item = CpusSpec>) -> Option<Caution> {
    let several: Vec<CpusSpec> = all.filter(|cpus| cpus.are_several()).collect();
    let cpus = *several.first()?;
    if several.iter().any(|other| other.turn != cpus.turn) {
        return None;
    }
    let turn = if cpus.turn < LONG_TURN {
        cpus.turn.0 * 4
    } else {
        cpus.turn.0 / 4
    };
    let other = CpusSpec {
        turn: Nanos(turn),
        ..cpus
    };
    Some(Caution::OneTurn { cpus, other })
}

/// Returns warnings about columns with noise whose trials did not alternate with those of the baseline.
fn apart(input: &Input, imported: Option<&Pairing>) -> Vec<Caution> {
    let noisy = |column: usize| {
        let mut trials = input.columns[column].trials.iter();
        trials.any(|t| t.row.cell.subject.arena.kind != ArenaKind::Exact)
    };
    (1..input.columns.len())
        .filter(|&column| noisy(0) && noisy(column))
        .filter_map(|column| match imported {
            _ if !is_one_campaign(input, column) => Some(Caution::Apart {
                a: input.columns[0].name.clone(),
                b: input.columns[column].name.clone(),
            }),
            Some(imported) => turns::caution(imported, input, column),
            None => None,
        })
        .collect()
}

/// Returns the rule by which trials form pairs, if all trials are from one imported campaign; otherwise `None`.
fn imported(store: &Store, input: &Input) -> Result<Option<Pairing>, CompareError> {
    if input.campaign.is_some() {
        return Ok(input.imported.clone());
    }
    let mut trials = input.columns.iter().flat_map(|column| &column.trials);
    let Some(first) = trials.next() else {
        return Ok(None);
    };
    if trials.any(|trial| trial.row.campaign != first.row.campaign) {
        return Ok(None);
    }
    let note = store.campaign(&first.row.campaign)?;
    Ok(note.and_then(|note| note.imported))
}

fn side(trials: &[TrialRow]) -> Side {
    let mut side = Side::default();
    for trial in trials {
        match &trial.row.invalid {
            None => side.trials.push(TrialRef {
                record: trial.row.id.clone(),
                seed: trial.row.seed,
                unit: trial.unit,
                repetition: trial.repetition,
                digest: trial.row.digest.clone(),
            }),
            Some(why) => side.invalid.push(InvalidTrial {
                record: trial.row.id.clone(),
                seed: trial.row.seed,
                why: why.to_string(),
                // Only the record states whether the trial died; `notes::look` reads it later.
                died: false,
            }),
        }
    }
    side
}

/// Returns a row for each metric of one cell, with the values of each column.
fn rows(store: &Store, trials: &[Vec<TrialRow>]) -> Result<Vec<MetricRow>, CompareError> {
    // The column of each valid record, and its index among the column's valid records.
    let mut places: HashMap<i64, (usize, usize)> = HashMap::new();
    let mut wanted: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (column, trials) in trials.iter().enumerate() {
        for (place, trial) in trials.iter().filter(|t| t.row.is_valid()).enumerate() {
            places.insert(trial.row.row, (column, place));
            wanted
                .entry(&trial.row.cell.subject.scenario)
                .or_default()
                .push(trial.row.row);
        }
    }
    let mut metrics: Vec<MetricRow> = Vec::new();
    // Metrics with the same name but different units are separate rows.
    let mut known: HashMap<(String, Unit), usize> = HashMap::new();
    for (scenario, records) in wanted {
        for (record, metric) in store.metrics(scenario, &records)? {
            let Some(&(column, place)) = places.get(&record) else {
                continue;
            };
            let key = (metric.name, metric.unit);
            let number = *known.entry(key).or_insert_with_key(|(name, unit)| {
                metrics.push(MetricRow {
                    name: name.clone(),
                    unit: *unit,
                    direction: metric.direction,
                    primary: metric.primary,
                    values: vec![Values::default(); trials.len()],
                    judgements: Vec::new(),
                });
                metrics.len() - 1
            });
            let values = &mut metrics[number].values[column];
            match metric.value {
                Value::Number(number) => values.values.push((place, number)),
                Value::Absent(why) => {
                    values.absent.get_or_insert(why);
                }
            }
        }
    }
    for values in metrics.iter_mut().flat_map(|row| &mut row.values) {
        values.values.sort_by_key(|(place, _)| *place);
    }
    Ok(metrics)
}

/// Returns the name of a unit in the input of the statistics.
fn label(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanos => "nanos",
        Unit::Bytes => "bytes",
        Unit::Pages => "pages",
        Unit::Count => "count",
        Unit::Share => "share",
        Unit::BytesPerSecond => "bytes-per-second",
        Unit::PerSecond => "per-second",
        Unit::Ratio => "ratio",
    }
}

/// Where the judgement on a metric in a column comes from.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    /// The values are judged directly; this is their index in the family.
    Own(usize),
    /// The row is a multiple of another row in the cell, and takes its judgement.
    Multiple(Multiple),
    /// The column's trials are identical to those of an earlier column; this is the index of that column.
    Twin(usize),
}

/// Judges every metric of every cell against the baseline, as one family. A metric that is a multiple of another, and a
/// column identical to an earlier one, are not judged a second time.
fn judge_all(comparison: &mut Comparison, input: &Input) -> Result<(), CompareError> {
    let mut samples = Vec::new();
    let mut sources: HashMap<(usize, usize, usize), Source> = HashMap::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        let margins = &input.cells[place].margins;
        let twins: Vec<Option<usize>> = (0..comparison.columns.len())
            .map(|column| cell.twin(column))
            .collect();
        for (number, row) in cell.metrics.iter().enumerate() {
            if cell.is_scale(row) {
                continue;
            }
            let multiple = cell.multiple(number).filter(|multiple| {
                let of = &cell.metrics[multiple.of].name;
                margins
                    .get(&row.name)
                    .is_none_or(|margin| margins.get(of) == Some(margin))
            });
            for (column, twin) in twins.iter().enumerate().skip(1) {
                let both = row.values[0]
                    .values
                    .len()
                    .min(row.values[column].values.len());
                if both == 0 {
                    continue;
                }
                let data_of =
                    |column: usize| data(cell, row, column, comparison.columns[column].paired);
                let twin = twin.filter(|&twin| data_of(twin) == data_of(column));
                let source = if let Some(twin) = twin {
                    Source::Twin(twin)
                } else if let Some(multiple) = multiple {
                    Source::Multiple(multiple)
                } else {
                    Source::Own(samples.len())
                };
                sources.insert((place, number, column), source);
                if !matches!(source, Source::Own(_)) {
                    continue;
                }
                samples.push(MetricSample {
                    name: row.name.clone(),
                    unit: label(row.unit).to_owned(),
                    direction: row.direction,
                    primary: row.primary,
                    margin: margins.get(&row.name).copied().map(Margin::Relative),
                    scale: pagetide_verdict::sample::Scale::Auto,
                    data: data_of(column),
                });
            }
        }
    }
    let primaries = samples.iter().filter(|sample| sample.primary).count();
    let values: usize = comparison
        .cells
        .iter()
        .flat_map(|cell| &cell.metrics)
        .flat_map(|row| &row.values)
        .map(|values| values.values.len())
        .sum();
    let mut family = Family::new(SEED, samples);
    family.alpha = ALPHA;
    family.resamples = u32::try_from(MAX_DRAWS / values.max(1))
        .unwrap_or(u32::MAX)
        .clamp(MIN_DRAWS, family.resamples);
    let rule = match &comparison.look {
        Some(look) => Plan::new(
            ALPHA,
            &look.planned,
            primaries,
            Design::Paired,
            Spending::default(),
        )?
        .rule(look.number)
        .clone(),
        None => Rule::fixed(ALPHA)?,
    };
    let judged = judge_by(&family, &rule);
    let columns = comparison.columns.len();
    for (place, cell) in comparison.cells.iter_mut().enumerate() {
        let all: Vec<Vec<Option<Judgement>>> = (0..cell.metrics.len())
            .map(|number| {
                (1..columns)
                    .map(|column| answer(&sources, &judged, cell, [place, number, column]))
                    .collect()
            })
            .collect();
        for (row, judgements) in cell.metrics.iter_mut().zip(all) {
            row.judgements = judgements;
        }
    }
    Ok(())
}

/// Returns the judgement on a row in a column, according to its [`Source`].
fn answer(
    sources: &HashMap<(usize, usize, usize), Source>,
    judged: &[Judgement],
    cell: &Cell,
    [place, number, column]: [usize; 3],
) -> Option<Judgement> {
    match *sources.get(&(place, number, column))? {
        Source::Own(at) => judged.get(at).cloned(),
        Source::Twin(twin) => answer(sources, judged, cell, [place, number, twin]),
        Source::Multiple(multiple) => {
            let of = answer(sources, judged, cell, [place, multiple.of, column])?;
            let row = &cell.metrics[number];
            Some(once::as_multiple(&of, row, label(row.unit), multiple))
        }
    }
}

/// True if a column and the baseline are from the same campaign.
fn is_one_campaign(input: &Input, column: usize) -> bool {
    let of = |column: usize| -> BTreeSet<&str> {
        input.columns[column]
            .trials
            .iter()
            .map(|t| &*t.row.campaign)
            .collect()
    };
    let (a, b) = (of(0), of(column));
    a == b && a.len() <= 1
}

/// Returns the values of a metric in the baseline and another column, paired or unpaired according to how they were
/// sampled.
fn data(cell: &Cell, row: &MetricRow, column: usize, paired: bool) -> Data {
    let exact = cell
        .subject
        .as_ref()
        .is_some_and(|subject| subject.arena.kind == ArenaKind::Exact);
    let sides = [&cell.sides[0], &cell.sides[column]];
    let values = [&row.values[0], &row.values[column]];
    if exact {
        return by_seed(sides, values);
    }
    let [a, b] = [0, 1].map(|side| units(sides[side], values[side]));
    if !paired {
        return Data::NestedUnpaired {
            a: a.into_values().map(|(values, _)| values).collect(),
            b: b.into_values().map(|(values, _)| values).collect(),
        };
    }
    let units: Vec<UnitPair> = a
        .into_iter()
        .filter_map(|(unit, (a, digests_a))| {
            let (b, digests_b) = b.get(&unit)?;
            Some(UnitPair {
                a,
                b: b.clone(),
                identical: digests_a == *digests_b,
            })
        })
        .collect();
    if units.is_empty() {
        return nothing_in_common("block");
    }
    Data::NestedPaired { units }
}

fn nothing_in_common(what: &str) -> Data {
    Data::Invalid {
        reason: format!("no {what} has a valid trial on both sides: run more trials"),
    }
}

/// Pairs the values of two columns by seed.
fn by_seed(sides: [&Side; 2], values: [&Values; 2]) -> Data {
    let other: HashMap<u64, (f64, &str)> = values[1]
        .values
        .iter()
        .map(|&(place, value)| {
            let trial = &sides[1].trials[place];
            (trial.seed, (value, trial.digest.as_str()))
        })
        .collect();
    let pairs: Vec<Pair> = values[0]
        .values
        .iter()
        .filter_map(|&(place, a)| {
            let trial = &sides[0].trials[place];
            let &(b, digest) = other.get(&trial.seed)?;
            Some(Pair {
                a,
                b,
                identical: trial.digest == digest,
            })
        })
        .collect();
    if pairs.is_empty() {
        return nothing_in_common("seed");
    }
    Data::Paired { pairs }
}

/// Returns the values and record digests of a column, by sampling unit.
fn units<'a>(side: &'a Side, values: &Values) -> BTreeMap<u32, (Vec<f64>, Vec<&'a str>)> {
    let mut units: BTreeMap<u32, (Vec<f64>, Vec<&str>)> = BTreeMap::new();
    for &(place, value) in &values.values {
        let trial = &side.trials[place];
        let unit = units.entry(trial.unit).or_default();
        unit.0.push(value);
        unit.1.push(&trial.digest);
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_one_length_on_several_cpus_are_a_caution() {
        let cpus = |text: &str| text.parse::<CpusSpec>().unwrap();
        let told =
            |all: &[&str]| one_turn(all.iter().map(|text| cpus(text))).map(|told| told.to_string());
        assert_eq!(told(&[]), None);
        assert_eq!(told(&["1", "1"]), None);
        assert_eq!(told(&["4", "1", "2:20us"]), None);
        assert!(
            told(&["1", "4", "2"])
                .unwrap()
                .contains("`--cpus 4:5us,4:20us`")
        );
        assert!(
            told(&["8:100us"])
                .unwrap()
                .contains("`--cpus 8:100us,8:25us`")
        );
    }
}
