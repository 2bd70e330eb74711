//! Results as lists: medians, power, calibrations, histories and records.

use std::fmt::Write as _;

use pagetide_compare::history::{CellHistory, Change, History, MIN_RECORDS, Stretch};
use pagetide_compare::{CalibrationNote, Comparison, MAX_SEEDS, MetricMedian, MetricPower};
use pagetide_quantity::command::in_backticks;
use pagetide_quantity::{Nanos, Unit};
use pagetide_record::Pass;
use pagetide_store::{CampaignNote, Row as Indexed, short};
use pagetide_verdict::judgement::EffectKind;
use serde::Serialize;

use crate::date::{ago, utc};
use crate::draw::{Align, Ink, TextStyle, quantity};
use crate::terminal::list::{Row, list};

impl Row for MetricMedian {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("cell", Align::Left),
        ("metric", Align::Left),
        ("seeds", Align::Right),
        ("median", Align::Right),
        ("least", Align::Right),
        ("most", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        let show = |value| quantity::show(self.unit, value, false);
        vec![
            self.cell.clone(),
            self.metric.clone(),
            self.seeds.to_string(),
            show(self.median),
            show(self.least),
            show(self.most),
        ]
    }
}

impl Row for MetricPower {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("cell", Align::Left),
        ("metric", Align::Left),
        ("variant", Align::Left),
        ("finds", Align::Right),
        ("needs", Align::Right),
        ("", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        let percent = |effect: f64| format!("{:.2} %", effect * 100.0);
        let finds = self
            .detectable
            .map_or_else(|| "nothing".to_owned(), percent);
        let needs = match self.needed {
            Some(seeds) => format!("{seeds} seeds"),
            None => format!("over {MAX_SEEDS} seeds"),
        };
        let (finds, needs) = match self.note {
            "" => (finds, needs),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        vec![
            self.cell.clone(),
            self.metric.clone(),
            self.variant.clone(),
            finds,
            needs,
            self.note.to_owned(),
        ]
    }
}

/// Row for the noise of one metric in a calibration.
#[derive(Serialize)]
struct Noise([String; 7]);

impl Row for Noise {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("cell", Align::Left),
        ("metric", Align::Left),
        ("pairs", Align::Right),
        ("identical", Align::Right),
        ("noise", Align::Right),
        ("bias", Align::Right),
        ("false claims", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        self.0.to_vec()
    }
}

/// Formats a calibration as a table, with a summary line below.
pub fn calibration(note: &CalibrationNote, text_style: &TextStyle) -> String {
    let number = |value: f64, kind: EffectKind| match kind {
        EffectKind::Ratio => format!("{:.3} %", value * 100.0),
        EffectKind::Difference => format!("{value:.3}"),
    };
    let mut rows = Vec::new();
    for (cell, calibration) in &note.cells {
        for metric in &calibration.metrics {
            let bias = metric.bias.as_ref().map_or_else(
                || "-".to_owned(),
                |bias| number(bias.estimate - bias.kind.null(), bias.kind),
            );
            rows.push(Noise([
                cell.clone(),
                metric.name.clone(),
                metric.pairs.to_string(),
                metric.identical.to_string(),
                number(metric.robust_deviation, metric.kind),
                bias,
                metric.false_claims.to_string(),
            ]));
        }
    }
    format!("{}\n{}\n", list(&rows, text_style), calibration_line(note))
}

/// Formats a calibration in one line, for the end of a table of verdicts; `None` if the calibration is about other
/// cells.
pub fn calibration_of(note: &CalibrationNote, comparison: &Comparison) -> Option<String> {
    let mut note = note.clone();
    let labels = || comparison.cells.iter().map(|cell| &cell.label);
    note.cells
        .retain(|(label, _)| labels().any(|own| own == label));
    (!note.cells.is_empty()).then(|| calibration_line(&note))
}

/// Formats a calibration in one line.
pub fn calibration_line(note: &CalibrationNote) -> String {
    let campaigns: u64 = note.cells.iter().map(|(_, c)| c.campaigns).sum();
    let alarms: u64 = note.cells.iter().map(|(_, c)| c.false_alarms).sum();
    let metrics = || note.cells.iter().flat_map(|(_, c)| &c.metrics);
    let pairs: u64 = metrics().map(|metric| metric.pairs).sum();
    let identical: u64 = metrics().map(|metric| metric.identical).sum();
    let noise = if pairs == identical {
        "every pair identical".to_owned()
    } else {
        format!("{identical} of {pairs} pairs of values identical")
    };
    format!(
        "Calibrated {}: {alarms} false alarms in {campaigns} campaigns of variants that differ in nothing that matters, {noise}.",
        ago(note.measured)
    )
}

/// Row for consecutive values of one kernel and variant between which nothing changed.
#[derive(Serialize)]
struct HistoryRow([String; 6]);

impl Row for HistoryRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("made (UTC)", Align::Left),
        ("kernel", Align::Left),
        ("variant", Align::Left),
        ("values", Align::Right),
        ("median", Align::Right),
        ("change", Align::Left),
    ];
    const WHOLE: &'static [usize] = &[0];

    fn cells(&self) -> Vec<String> {
        self.0.to_vec()
    }
}

/// Renders the history of a metric for each cell.
pub fn history(history: &History, metric: &str, text_style: &TextStyle) -> String {
    let mut text = String::new();
    for cell in &history.cells {
        let head = format!("{} · {metric}", cell.label);
        text.push_str(&text_style.ink(Ink::Strong, &head));
        text.push('\n');
        text.push_str(&stretches(cell, text_style));
        if cell.points < MIN_RECORDS {
            let _ = writeln!(
                text,
                "{}: {MIN_RECORDS} are needed to find a change; {} judges two",
                match cell.points {
                    1 => "one kernel or run".to_owned(),
                    many => format!("{many} kernels or runs"),
                },
                in_backticks("compare A B")
            );
        } else if cell.changes.is_empty() {
            text.push_str("no change found\n");
        }
        if cell.left_out > 0 {
            let _ = writeln!(text, "{} older records are left out", cell.left_out);
        }
        text.push('\n');
    }
    text
}

/// Renders the history of a cell as a table, with one row for consecutive values of one kernel and variant between
/// which nothing changed.
fn stretches(cell: &CellHistory, text_style: &TextStyle) -> String {
    let row = |stretch: Stretch| {
        let change = |change: &Change| shown(change, cell.unit, text_style);
        let started = utc(stretch.started);
        HistoryRow([
            // The date is printed without seconds.
            started.get(..16).unwrap_or(&started).replace('T', " "),
            stretch.release,
            stretch.variant,
            stretch.values.to_string(),
            quantity::show(cell.unit, stretch.median, text_style.ascii),
            stretch.change.as_ref().map_or_else(String::new, change),
        ])
    };
    let rows: Vec<HistoryRow> = cell.stretches().into_iter().map(row).collect();
    list(&rows, text_style)
}

fn shown(change: &Change, unit: Unit, text_style: &TextStyle) -> String {
    let effect = if change.is_ratio {
        format!("{:+.2} %", (change.effect - 1.0) * 100.0)
    } else {
        format!(
            "by {}",
            quantity::show(unit, change.effect, text_style.ascii)
        )
    };
    format!("{effect} (p = {:.3})", change.p)
}

/// A campaign in the store or in a file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CampaignRow {
    /// ID of the campaign in the store, or name of the campaign in a file.
    pub name: String,
    /// Place of the campaign: `store`, or the path of its file.
    pub place: String,
    /// Names of the campaign's variants.
    pub variants: Vec<String>,
    /// Number of the campaign's cells.
    pub cells: usize,
    /// Number of the campaign's trials.
    pub trials: usize,
    /// Time when the campaign first started, in nanoseconds since 1970; `None` for a file.
    pub started: Option<Nanos>,
}

impl From<CampaignNote> for CampaignRow {
    fn from(note: CampaignNote) -> Self {
        Self {
            name: note.id(),
            place: "store".to_owned(),
            cells: note.cells.len(),
            trials: note.entries.len(),
            started: Some(note.started),
            variants: note.variants,
        }
    }
}

impl Row for CampaignRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("campaign", Align::Left),
        ("where", Align::Left),
        ("variants", Align::Left),
        ("cells", Align::Right),
        ("trials", Align::Right),
        ("started", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.place.clone(),
            self.variants.join(", "),
            self.cells.to_string(),
            self.trials.to_string(),
            self.started.map_or_else(|| "-".to_owned(), ago),
        ]
    }
}

/// A cell of a campaign plan.
#[derive(Serialize)]
pub struct PlannedCell {
    /// Label of the cell for readers.
    pub label: String,
    /// Number of trials in the cell.
    pub trials: u64,
    /// Number of trials that already have a record.
    pub found: u64,
    /// Estimated elapsed time of one trial, and the source of the estimate, as text.
    pub each: String,
}

impl Row for PlannedCell {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("cell", Align::Left),
        ("trials", Align::Right),
        ("done", Align::Right),
        ("each", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.label.clone(),
            self.trials.to_string(),
            self.found.to_string(),
            self.each.clone(),
        ]
    }
}

/// A record as listed in the store's index.
#[derive(Serialize)]
pub struct RecordRow(pub Indexed);

impl Row for RecordRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("record", Align::Left),
        ("cell", Align::Left),
        ("variant", Align::Left),
        ("seed", Align::Right),
        ("took", Align::Right),
        ("made", Align::Right),
        ("digest", Align::Left),
        ("state", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        let row = &self.0;
        let state = match (&row.invalid, row.warnings) {
            (Some(why), _) => format!("invalid: {why}"),
            (None, 0) => "valid".to_owned(),
            (None, n) => format!("valid, {n} warnings"),
        };
        let state = match row.cell.subject.pass {
            Pass::Timed => state,
            pass @ (Pass::Observed | Pass::Profiled) => format!("{state}, {pass}"),
        };
        vec![
            short(&row.id).to_owned(),
            row.cell.subject.cell_label(),
            row.variant.name.clone(),
            row.seed.to_string(),
            row.wall.to_string(),
            ago(row.started),
            short(&row.digest).to_owned(),
            state,
        ]
    }
}
