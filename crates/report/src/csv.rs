//! CSV (RFC 4180) for spreadsheets and data frames, in full precision: judgements and samples in long form, and series
//! as they are.
//!
//! A cell without a number is empty, which data frames read as missing. In judgements and samples, the column `missing`
//! gives the reason; it is empty if there is a number.
//!
//! Text that a spreadsheet would run as a formula is prefixed with an apostrophe (OWASP, "CSV Injection"). Control
//! characters are shown as escapes.

use std::io::{self, Write};

use pagetide_compare::{Cell, Comparison, MetricRow, Side, Values};
use pagetide_quantity::{ColumnData, Metric, Series, Value};
use pagetide_record::Record;
use pagetide_verdict::Verdict;
use pagetide_verdict::judgement::EffectKind;

use crate::about::{self, BASELINE};
use crate::draw::escaped;

/// Error while CSV is written.
#[derive(Debug, thiserror::Error)]
#[error("writing CSV was refused ({0}): check the disk and the file's permissions")]
pub struct CsvError(#[from] io::Error);

impl From<csv::Error> for CsvError {
    /// Keeps the writer's error as the cause, so that a closed pipe can be recognized. A closed pipe is not a failure.
    fn from(error: csv::Error) -> Self {
        let text = error.to_string();
        Self(match error.into_kind() {
            csv::ErrorKind::Io(cause) => cause,
            _ => io::Error::other(text),
        })
    }
}

/// Names of the columns in the table of judgements.
pub const JUDGEMENTS: [&str; 30] = [
    "cell",
    "scenario",
    "as_written",
    "params",
    "memory",
    "swap",
    "metric",
    "unit",
    "direction",
    "primary",
    "variant",
    "kernel",
    "baseline",
    "n",
    "median",
    "mean",
    "deviation",
    "verdict",
    "effect_kind",
    "effect",
    "low",
    "high",
    "level",
    "p",
    "p_adjusted",
    "n_needed",
    "margin_low",
    "margin_high",
    "missing",
    "no_verdict",
];

/// Names of the columns in the table of samples.
pub const SAMPLES: [&str; 19] = [
    "record",
    "digest",
    "valid",
    "scenario",
    "as_written",
    "params",
    "memory",
    "swap",
    "arena",
    "pass",
    "variant",
    "kernel",
    "seed",
    "metric",
    "unit",
    "direction",
    "value",
    "missing",
    "invalid",
];

/// Makes text safe for a cell of a spreadsheet: escapes control characters, and puts an apostrophe before text that
/// begins with `=`, `+`, `-` or `@` and could be read as a formula.
pub(crate) fn cell(text: &str) -> String {
    let text = escaped(text);
    if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text
    }
}

/// Returns the serialized form of an enum variant, which is its name; JSON for other values.
pub(crate) fn name_of(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// Returns the parameters and their values as text for one cell.
pub(crate) fn params(params: &std::collections::BTreeMap<String, String>) -> String {
    let all: Vec<String> = params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    all.join(" ")
}

fn number(value: Option<f64>) -> String {
    value
        .filter(|value| value.is_finite())
        .map_or_else(String::new, |value| value.to_string())
}

/// Why a column has no value of a metric, and why it has no verdict or one that is invalid or confounded. Each text is
/// empty if there is no such reason.
struct Gaps {
    missing: String,
    no_verdict: String,
}

impl Gaps {
    fn of(comparison: &Comparison, group: &Cell, row: Option<&MetricRow>, index: usize) -> Self {
        let missing = |index: usize| {
            let values = row.and_then(|row| row.values.get(index));
            missing(group.sides.get(index), values)
        };
        let own = missing(index);
        let baseline = missing(BASELINE);
        let judgement = row.and_then(|row| about::judgement(row, index));
        let no_verdict = match judgement.map(|judgement| &judgement.verdict) {
            _ if index == BASELINE => String::new(),
            Some(Verdict::Invalid { reason }) => reason.clone(),
            Some(Verdict::Confounded { by }) => format!("confounded by {by}"),
            Some(_) => String::new(),
            None if own.is_empty() && !baseline.is_empty() => {
                format!(
                    "{} has no value ({baseline})",
                    about::name(comparison, BASELINE)
                )
            }
            None => own.clone(),
        };
        Self {
            missing: cell(&own),
            no_verdict: cell(&no_verdict),
        }
    }
}

/// Returns the reason why one side of a cell has no value of a metric; empty if the side has a value.
fn missing(side: Option<&Side>, values: Option<&Values>) -> String {
    if values.is_some_and(|values| !values.values.is_empty()) {
        return String::new();
    }
    if let Some(why) = values.and_then(|values| values.absent.clone()) {
        return why;
    }
    match side {
        Some(side) if !side.trials.is_empty() => NOT_MEASURED.to_owned(),
        Some(side) if !side.invalid.is_empty() => {
            let mut reasons: Vec<&str> = Vec::new();
            for trial in &side.invalid {
                if !reasons.contains(&trial.why.as_str()) {
                    reasons.push(&trial.why);
                }
            }
            format!("invalid: {}", reasons.join("; "))
        }
        _ => "no trial was run".to_owned(),
    }
}

/// Reason shown for a metric that no valid trial of a side has, if the trials give no reason.
const NOT_MEASURED: &str = "not measured";

/// Writes a comparison: one row for each cell, metric and variant. A cell without any metric, because none of its
/// trials is valid, still gets one row for each variant, with the reason instead of a metric.
pub fn judgements(writer: impl Write, comparison: &Comparison) -> Result<(), CsvError> {
    let mut out = csv::Writer::from_writer(writer);
    out.write_record(JUDGEMENTS)?;
    for group in &comparison.cells {
        let without = std::iter::once(None).take(usize::from(group.metrics.is_empty()));
        for row in group.metrics.iter().map(Some).chain(without) {
            for index in 0..comparison.columns.len() {
                out.write_record(judged(comparison, group, row, index))?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// Returns one row of the table of judgements, with the columns [`JUDGEMENTS`].
fn judged(
    comparison: &Comparison,
    group: &Cell,
    row: Option<&MetricRow>,
    index: usize,
) -> [String; JUDGEMENTS.len()] {
    let subject = about::subject(group);
    let column = &comparison.columns[index];
    let judgement = row.and_then(|row| about::judgement(row, index));
    let values = row
        .and_then(|row| row.values.get(index))
        .and_then(about::centre);
    let effect = judgement.and_then(|j| j.effect);
    let interval = effect.and_then(|effect| effect.interval);
    let margin = judgement.and_then(|j| j.margin.as_ref());
    let needed = match judgement.map(|j| &j.verdict) {
        Some(Verdict::Inconclusive { n_needed: Some(n) }) => n.to_string(),
        _ => String::new(),
    };
    let gaps = Gaps::of(comparison, group, row, index);
    let of_row = |show: fn(&MetricRow) -> String| row.map_or_else(String::new, show);
    [
        cell(&group.label),
        cell(&subject.scenario),
        subject.as_written.to_string(),
        cell(&params(&subject.params)),
        subject.memory.to_string(),
        group.swap_of(index).to_string(),
        of_row(|row| cell(&row.name)),
        of_row(|row| name_of(row.unit)),
        of_row(|row| name_of(row.direction)),
        of_row(|row| row.primary.to_string()),
        cell(&column.name),
        cell(about::release(column)),
        (index == BASELINE).to_string(),
        values.map_or_else(String::new, |v| v.n.to_string()),
        number(values.map(|v| v.median)),
        number(values.map(|v| v.mean)),
        number(values.and_then(|v| v.deviation)),
        judgement.map_or_else(String::new, |j| j.verdict.to_string()),
        effect.map_or_else(String::new, |effect| {
            match effect.kind {
                EffectKind::Ratio => "ratio",
                EffectKind::Difference => "difference",
            }
            .to_owned()
        }),
        number(effect.map(|effect| effect.estimate)),
        number(interval.map(|interval| interval.low)),
        number(interval.map(|interval| interval.high)),
        number(interval.map(|interval| interval.level)),
        number(judgement.and_then(|j| j.p)),
        number(judgement.and_then(|j| j.p_adjusted)),
        needed,
        number(margin.map(|margin| margin.low)),
        number(margin.map(|margin| margin.high)),
        gaps.missing,
        gaps.no_verdict,
    ]
}

/// Returns the reason why a metric has no number; empty if the metric has a number.
pub(crate) fn why_missing(metric: Option<&Metric>) -> &str {
    match metric.map(|metric| &metric.value) {
        Some(Value::Number(value)) if value.is_finite() => "",
        Some(Value::Number(_)) => "not a finite number",
        Some(Value::Absent(why)) => why,
        None => "nothing was measured",
    }
}

/// Returns the metrics of a record. A record without metrics gives a single `None`, so that the record still gets a row
/// with the reason.
pub(crate) fn metrics(record: &Record) -> impl Iterator<Item = Option<&Metric>> {
    let all = &record.results.metrics;
    let without = std::iter::once(None).take(usize::from(all.is_empty()));
    all.iter().map(Some).chain(without)
}

/// A value in one cell of the table of samples.
pub(crate) enum Datum {
    Text(String),
    Flag(bool),
    Number(Option<f64>),
}

impl Datum {
    fn text(text: &impl ToString) -> Self {
        Self::Text(text.to_string())
    }
}

/// Returns the rows of the table of samples, with the columns [`SAMPLES`]: one for each metric of a record, or a single
/// row with the reason if the record has no metrics.
pub(crate) fn sample_rows(record: &Record) -> impl Iterator<Item = [Datum; SAMPLES.len()]> {
    let subject = &record.subject;
    let id = record.id();
    metrics(record).map(move |metric| {
        let of_metric = |show: fn(&Metric) -> String| metric.map_or_else(String::new, show);
        let value = metric.and_then(|metric| metric.value.number());
        [
            Datum::text(&id),
            Datum::text(&record.digest),
            Datum::Flag(record.is_valid()),
            Datum::text(&subject.scenario),
            Datum::Flag(subject.as_written),
            Datum::text(&params(&subject.params)),
            Datum::text(&subject.memory),
            Datum::text(&subject.swap_label()),
            Datum::text(&subject.arena.kind),
            Datum::text(&subject.pass),
            Datum::text(&subject.variant.name),
            Datum::text(&subject.variant.kernel.release),
            // The seed is text: it uses all 64 bits, which do not fit the signed integers of data frames.
            Datum::text(&subject.seed),
            Datum::Text(of_metric(|metric| metric.name.clone())),
            Datum::Text(of_metric(|metric| name_of(metric.unit))),
            Datum::Text(of_metric(|metric| name_of(metric.direction))),
            Datum::Number(value.filter(|value| value.is_finite())),
            Datum::text(&why_missing(metric)),
            Datum::Text(record.why_invalid().unwrap_or_default()),
        ]
    })
}

/// Writes samples: one row for each record and metric, including invalid records. A record without metrics gets one row
/// with the reason.
pub fn samples<'a>(
    writer: impl Write,
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<(), CsvError> {
    let mut out = csv::Writer::from_writer(writer);
    out.write_record(SAMPLES)?;
    for row in records.into_iter().flat_map(sample_rows) {
        out.write_record(row.map(|datum| match datum {
            Datum::Text(text) => cell(&text),
            Datum::Flag(flag) => flag.to_string(),
            Datum::Number(value) => number(value),
        }))?;
    }
    out.flush()?;
    Ok(())
}

/// Writes the columns of a series unchanged; the header has `name (unit)` for each. Numbers that are not finite give
/// empty cells.
pub fn series(writer: impl Write, series: &Series) -> Result<(), CsvError> {
    let mut out = csv::Writer::from_writer(writer);
    out.write_record(
        series
            .columns
            .iter()
            .map(|(column, _)| cell(&format!("{} ({})", column.name, name_of(column.unit)))),
    )?;
    for index in 0..series.rows() {
        out.write_record(series.columns.iter().map(|(_, data)| match data {
            ColumnData::Int(values) => values.get(index).map_or_else(String::new, i64::to_string),
            ColumnData::Float(values) => number(values.get(index).copied()),
        }))?;
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_quantity::Unit;

    #[test]
    fn formulas_and_control_characters_are_disarmed() {
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("@cmd"), "'@cmd");
        assert_eq!(cell("a\nb\0"), "a\\nb\\u{0}");
        assert_eq!(cell("mglru-on"), "mglru-on");
    }

    #[test]
    fn a_closed_pipe_is_kept_as_the_cause_in_every_table() {
        /// A writer that accepts this number of bytes, and then behaves like a closed pipe.
        struct Pipe(usize);
        impl Write for Pipe {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self
                    .0
                    .checked_sub(bytes.len())
                    .ok_or(io::ErrorKind::BrokenPipe)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let data = Series::new("x").int("page", Unit::Pages, 0..100_000);
        // The pipe is closed while rows are written, or only at the end.
        for room in [20_000, 0] {
            let error = series(Pipe(room), &data).unwrap_err();
            let cause = std::error::Error::source(&error).unwrap();
            let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
            assert_eq!(kind, Some(io::ErrorKind::BrokenPipe), "{error}");
        }
    }

    #[test]
    fn a_series_keeps_its_columns_and_every_digit() {
        let data = Series::new("x").int("page", Unit::Pages, [1, -2]).float(
            "share",
            Unit::Share,
            [0.1, f64::NAN],
        );
        let mut out = Vec::new();
        series(&mut out, &data).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "page (pages),share (share)\n1,0.1\n-2,\n"
        );
    }
}
