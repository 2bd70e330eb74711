//! `pagetide history`: a metric across kernels or dates, and where it changed.

use anyhow::Result;
use clap::ValueEnum;
use pagetide_compare::history::{CellHistory, Order};
use pagetide_compare::{CompareError, history};
use pagetide_report::draw::{Align, Ink, quantity};
use pagetide_report::terminal::{Row, list};
use pagetide_store::Filter;
use pagetide_verdict::number;
use serde::Serialize;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Show a metric across kernels or dates, and where it changed
///
/// Changes are found by E-divisive with permutation significance; each value is set against the median of its seed.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide history swap-in --scenario contswap
  pagetide history elapsed --by dates --variant mglru-on --json")]
pub struct Args {
    /// Name of the metric
    metric: String,
    /// Of this scenario alone
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Of this variant alone
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Of this campaign alone
    #[arg(long, value_name = "NAME")]
    campaign: Option<String>,
    /// In which order
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = By::Kernels)]
    by: By,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// Older kernels first
    Kernels,
    /// Older records first
    Dates,
}

/// Values next to each other that are of one kernel and variant.
#[derive(Serialize)]
struct Stretch {
    release: String,
    variant: String,
    values: usize,
    median: f64,
    shown: String,
    change: String,
}

impl Row for Stretch {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("kernel", Align::Left),
        ("variant", Align::Left),
        ("values", Align::Right),
        ("median", Align::Right),
        ("change", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.release.clone(),
            self.variant.clone(),
            self.values.to_string(),
            self.shown.clone(),
            self.change.clone(),
        ]
    }
}

/// Shows it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    if let Some(name) = &args.scenario {
        pagetide_scenario::find(name)?;
    }
    let store = places.store()?;
    let filter = Filter {
        scenario: args.scenario.clone(),
        variant: args.variant.clone(),
        campaign: args.campaign.clone(),
        ..Filter::default()
    };
    let order = match args.by {
        By::Kernels => Order::Kernels,
        By::Dates => Order::Dates,
    };
    let history = match history(&store, &args.metric, &filter, order) {
        Err(CompareError::NoRecords { .. }) => return Err(nothing(args)),
        other => other?,
    };
    if out.json {
        out.json(&history)?;
        return Ok(End::Done);
    }
    let mut text = String::new();
    for cell in &history.cells {
        text.push_str(
            &out.look
                .ink(Ink::Strong, &format!("{} · {}", cell.label, args.metric)),
        );
        text.push('\n');
        text.push_str(&list(&stretches(cell, &out), &out.look));
        if cell.changes.is_empty() {
            text.push_str("no change found\n");
        }
        if cell.left_out > 0 {
            put!(text, "{} older records are left out\n", cell.left_out);
        }
        text.push('\n');
    }
    out.text(&text)?;
    Ok(End::Done)
}

/// No record has the metric: which was meant?
fn nothing(args: &Args) -> anyhow::Error {
    let known = || {
        pagetide_scenario::list()
            .iter()
            .filter(|definition| {
                args.scenario
                    .as_ref()
                    .is_none_or(|name| name == definition.name)
            })
            .flat_map(|definition| definition.metrics.iter().map(|metric| metric.name))
    };
    if known().any(|name| name == args.metric) {
        return Usage::error(format!(
            "no valid record that fits has metric `{}`: `pagetide list records` shows what is there",
            args.metric
        ));
    }
    let near = known()
        .map(|name| {
            (
                strsim::normalized_damerau_levenshtein(&args.metric, name),
                name,
            )
        })
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = near.map_or_else(
        || "`pagetide list scenarios --long` shows them all".to_owned(),
        |(_, name)| format!("did you mean `{name}`?"),
    );
    Usage::error(format!("there is no metric `{}`: {hint}", args.metric))
}

/// Values of one kernel and variant in a row, cut where the metric changes.
fn stretches(cell: &CellHistory, out: &Output) -> Vec<Stretch> {
    let mut rows: Vec<Stretch> = Vec::new();
    let mut from = 0;
    for at in 1..=cell.values.len() {
        let is_end = cell.values.get(at).is_none_or(|next| {
            let value = &cell.values[from];
            next.release != value.release
                || next.variant != value.variant
                || cell.changes.iter().any(|change| change.at == at)
        });
        if !is_end {
            continue;
        }
        let values: Vec<f64> = cell.values[from..at].iter().map(|v| v.value).collect();
        let change = cell.changes.iter().find(|change| change.at == from);
        let change = change.map_or_else(String::new, |change| {
            if change.is_ratio {
                format!(
                    "{:+.2} % (p = {:.3})",
                    (change.effect - 1.0) * 100.0,
                    change.p
                )
            } else {
                let by = quantity::show(cell.unit, change.effect, out.look.ascii);
                format!("by {by} (p = {:.3})", change.p)
            }
        });
        let median = number::median(&values).unwrap_or(f64::NAN);
        rows.push(Stretch {
            release: cell.values[from].release.clone(),
            variant: cell.values[from].variant.clone(),
            values: values.len(),
            median,
            shown: quantity::show(cell.unit, median, out.look.ascii),
            change,
        });
        from = at;
    }
    rows
}
