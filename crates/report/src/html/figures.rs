//! Selects the records for a page's figures and collects their data.

use std::collections::BTreeMap;
use std::io::{self, Read};

use pagetide_compare::{Cell as Group, Observation};
use pagetide_quantity::{Bytes, Histogram};
use pagetide_record::RecordReader;

use super::accesses::{self, Room};
use super::bars::bars;
use super::blob::Blobs;
use super::data::{Cell, Page, Shares, Table};
use super::flames::flames;
use super::heats::heats;
use super::makeup::make_ups;
use super::parts::wholes;
use super::states::Faults;
use super::{HtmlError, Input, or_omit, table};
use crate::draw::{clean, clean_label};

/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 120;
/// Maximum number of deflated bytes for all accesses. Base64 adds a third; a file of 12 MiB then still has space for
/// the rest of the page.
const ACCESS_BYTES: f64 = 8.2 * 1024.0 * 1024.0;
/// Maximum number of accesses whose page numbers are kept, over all cells.
const MAX_PAGES: u64 = 1 << 18;
/// Deflated size of the series of one record from which on its further series are left out, and the HTML page says so.
const SERIES: Bytes = Bytes(6 << 20);
/// Maximum number of records whose histograms are merged for one side.
const MAX_TRIALS: usize = 64;
/// Name of the log of accesses.
const LOG: &str = "access-log";

/// Data of all figures of a page.
#[derive(Default)]
pub(crate) struct Figures {
    pub page: Page,
    pub accesses: u64,
    pub omitted: Vec<String>,
}

/// Writes the blobs of all figures and returns the data that refers to them.
pub(crate) fn collect(input: &Input<'_>, blobs: &mut Blobs<'_>) -> Result<Figures, HtmlError> {
    let comparison = input.comparison;
    let mut figures = Figures::default();
    figures.omitted.clone_from(&input.sources.omitted);
    figures.page.columns = comparison
        .columns
        .iter()
        .map(|column| clean(&column.name, NAME_CHARS, false))
        .collect();
    let shown: Vec<Vec<BulkRecord<'_>>> = comparison
        .cells
        .iter()
        .enumerate()
        .map(|(place, group)| shown(input, place, group, &mut figures.omitted))
        .collect();
    let logs = || shown.iter().flatten().filter(|shown| shown.entries > 0);
    let all: u64 = logs().map(|shown| shown.entries).sum();
    // Traces of one cell usually have the same references, and identical blobs are written once.
    let cells = shown
        .iter()
        .filter(|all| all.iter().any(|shown| shown.entries > 0));
    let room = Room {
        for_each: (ACCESS_BYTES / all.max(1) as f64).min(8.0),
        pages: MAX_PAGES / (cells.count() as u64).max(1),
    };
    for (place, (group, shown)) in comparison.cells.iter().zip(&shown).enumerate() {
        let mut cell = Cell {
            label: clean_label(&group.label, NAME_CHARS, false),
            place,
            ..Cell::default()
        };
        for side in shown {
            traces(side, room, &mut cell, blobs, &mut figures)?;
            series(side, &mut cell, blobs, &mut figures)?;
            if let Some(seen) = side.observed {
                let all = make_ups(&side.reader, seen);
                for make_up in or_omit(all, "memory by kind over time", &mut figures.omitted)
                    .into_iter()
                    .flatten()
                {
                    cell.makeups
                        .push(make_up.pack(side.column, &side.id, blobs)?);
                }
            }
        }
        cell.histograms = histograms(input, group, &mut figures.omitted);
        cell.bars = bars(input, group, &mut figures.omitted);
        cell.wholes = wholes(input, place, group.sides.len());
        cell.flames = flames(input, place, group.sides.len(), blobs)?;
        cell.heats = heats(input, place, group.sides.len(), blobs)?;
        figures.page.cells.push(cell);
    }
    Ok(figures)
}

/// A record whose access log or series are shown.
struct BulkRecord<'a> {
    column: usize,
    id: String,
    reader: RecordReader,
    /// Number of accesses in the record's log.
    entries: u64,
    /// The observation of an observed record, of which only the series over time are needed.
    observed: Option<&'a Observation>,
}

/// Selects the records whose large data is shown. For each variant these are the trial with the lowest seed that all
/// variants with trials have (its first trial if there is no such seed), and the observed trial.
fn shown<'a>(
    input: &Input<'a>,
    place: usize,
    group: &Group,
    omitted: &mut Vec<String>,
) -> Vec<BulkRecord<'a>> {
    let has = |side: &pagetide_compare::Side, seed: u64| {
        side.trials.is_empty() || side.trials.iter().any(|trial| trial.seed == seed)
    };
    let seed = group
        .sides
        .iter()
        .flat_map(|side| &side.trials)
        .map(|trial| trial.seed)
        .filter(|seed| group.sides.iter().all(|side| has(side, *seed)))
        .min();
    let mut all = Vec::new();
    for (column, side) in group.sides.iter().enumerate() {
        let timed = side
            .trials
            .iter()
            .find(|trial| Some(trial.seed) == seed)
            .or(side.trials.first());
        let observed = input.sources.observed.get(&(place, column));
        for (id, observed) in timed
            .map(|trial| (&trial.record, None))
            .into_iter()
            .chain(observed.map(|seen| (&seen.record, Some(seen))))
        {
            match (input.open)(id) {
                Ok(reader) => {
                    let log = reader
                        .record()
                        .sections
                        .iter()
                        .find(|section| section.kind == "blob" && section.name == LOG);
                    all.push(BulkRecord {
                        column,
                        id: id.clone(),
                        entries: log
                            .filter(|_| observed.is_none())
                            .map_or(0, |section| section.size.0 / 8),
                        reader,
                        observed,
                    });
                }
                Err(why) => omitted.push(format!("figures of record {id}: {why}")),
            }
        }
    }
    all
}

fn traces(
    side: &BulkRecord<'_>,
    room: Room,
    cell: &mut Cell,
    blobs: &mut Blobs<'_>,
    figures: &mut Figures,
) -> Result<(), HtmlError> {
    if side.entries == 0 {
        return Ok(());
    }
    let open = || -> io::Result<Box<dyn Read>> {
        side.reader
            .blob(LOG)
            .map_err(|error| io::Error::other(error.to_string()))
    };
    if let Err(error) = open() {
        figures
            .omitted
            .push(format!("accesses of record {}: {error}", side.id));
        return Ok(());
    }
    let faults = Faults::of(side.reader.record());
    let mut log = accesses::pack(side.entries, room, faults, blobs, open)?;
    log.column = side.column;
    log.record.clone_from(&side.id);
    log.seed = side.reader.record().subject.seed;
    figures.accesses += log.n;
    cell.traces.push(log);
    Ok(())
}

fn series(
    side: &BulkRecord<'_>,
    cell: &mut Cell,
    blobs: &mut Blobs<'_>,
    figures: &mut Figures,
) -> Result<(), HtmlError> {
    let names: Vec<String> = side.reader.series_names().map(str::to_owned).collect();
    let before = blobs.bytes();
    for name in names {
        if blobs.bytes() - before > SERIES.0 {
            figures.omitted.push(format!(
                "series {name} of record {}: the page would become too large",
                side.id
            ));
            continue;
        }
        let what = format!("series {name} of record {}", side.id);
        let Some(series) = or_omit(side.reader.series(&name), &what, &mut figures.omitted) else {
            continue;
        };
        let over_time = series.columns.first().is_some_and(|(head, _)| {
            head.unit == pagetide_quantity::Unit::Nanos
                && matches!(head.name.as_str(), "time" | "at")
        });
        if side.observed.is_some() && !over_time {
            continue;
        }
        let packed = table::pack(&series, blobs)?;
        cell.tables.push(Table {
            column: side.column,
            record: side.id.clone(),
            ..packed
        });
    }
    Ok(())
}

/// Returns the histograms of each variant, merged over the variant's first [`MAX_TRIALS`] trials.
fn histograms(input: &Input<'_>, group: &Group, omitted: &mut Vec<String>) -> Vec<Shares> {
    let mut all: BTreeMap<(String, usize), (Histogram, usize)> = BTreeMap::new();
    for (column, side) in group.sides.iter().enumerate() {
        for trial in side.trials.iter().take(MAX_TRIALS) {
            let reader = match (input.open)(&trial.record) {
                Ok(reader) => reader,
                Err(why) => {
                    omitted.push(format!("histograms of record {}: {why}", trial.record));
                    continue;
                }
            };
            for (name, histogram) in reader.into_record().results.histograms {
                let entry = all.entry((name, column)).or_default();
                entry.0.merge(&histogram);
                entry.1 += 1;
            }
        }
    }
    all.into_iter()
        .filter(|(_, (histogram, _))| histogram.count > 0)
        .map(|((name, column), (histogram, trials))| Shares {
            name: clean(&name, NAME_CHARS, false),
            column,
            trials,
            count: histogram.count,
            mean: histogram.mean(),
            min: histogram.min,
            max: histogram.max,
            quantiles: [0.5, 0.9, 0.99, 0.999, 0.9999].map(|q| histogram.quantile(q)),
            buckets: histogram
                .buckets
                .iter()
                .map(|(index, count)| {
                    let (low, high) = Histogram::bounds(*index);
                    (low, high, *count)
                })
                .collect(),
        })
        .collect()
}
