//! `pagetide history`: a metric across kernels or dates, and where it changed.

use anyhow::Result;
use clap::ValueEnum;
use pagetide_compare::history::{FEWEST, Order};
use pagetide_compare::{CompareError, history};
use pagetide_quantity::nearest;
use pagetide_report::draw::Ink;
use pagetide_report::terminal;
use pagetide_store::Filter;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Show a metric across kernels or dates, and where it changed
///
/// Changes are found by E-divisive with permutation significance; each value is set against the median of its
/// seed, and all values of one kernel count as one.
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

/// Shows it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
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
        Err(CompareError::NoRecords { .. }) => {
            // Imported scenarios are known by their records alone.
            if let Some(name) = &args.scenario
                && store.select(&of_scenario(name))?.is_empty()
            {
                pagetide_scenario::find(name)?;
            }
            return Err(nothing(args));
        }
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
        text.push_str(&terminal::history(cell, &out.look));
        if cell.points < FEWEST {
            put!(
                text,
                "{} kernels or runs are too few to find a change among, which takes {FEWEST}: `pagetide compare` judges two\n",
                cell.points
            );
        } else if cell.changes.is_empty() {
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

/// All records of a scenario.
fn of_scenario(name: &str) -> Filter {
    Filter {
        scenario: Some(name.to_owned()),
        limit: Some(1),
        ..Filter::default()
    }
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
    let near = nearest(&args.metric, known());
    let hint = near.map_or_else(
        || "`pagetide list scenarios --long` shows them all".to_owned(),
        |name| format!("did you mean `{name}`?"),
    );
    Usage::error(format!("there is no metric `{}`: {hint}", args.metric))
}
