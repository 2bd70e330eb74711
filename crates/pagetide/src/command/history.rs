//! `pagetide history`: shows a metric across kernels or dates, and where it changed.

use anyhow::Result;
use pagetide_compare::history::Order;
use pagetide_compare::{CompareError, history};
use pagetide_lab::vocabulary;
use pagetide_report::terminal;
use pagetide_store::Filter;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Show a metric across kernels or dates, and where it changed
///
/// Changes are found by E-divisive with permutation significance; each value is compared with the median of its seed,
/// and all values of one kernel count as one.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide history swap-in --scenario contswap
  pagetide history elapsed --by dates --variant mglru-on --json")]
pub struct Args {
    /// Name of the metric
    metric: String,
    /// Only this scenario
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Only this variant
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Only this campaign
    #[arg(long, value_name = "NAME")]
    campaign: Option<String>,
    /// Order of the values: kernels, older versions first, or dates, separately for each variant
    #[arg(long, value_name = "ORDER", default_value = "kernels")]
    by: Order,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let filter = Filter {
        scenario: args.scenario.clone(),
        variant: args.variant.clone(),
        campaign: args.campaign.clone(),
        ..Filter::default()
    };
    let history = match history(&store, &args.metric, &filter, args.by) {
        Err(CompareError::NoRecords { .. }) => {
            // Imported scenarios have no definition; only their records are known.
            let of_scenario = Filter {
                scenario: args.scenario.clone(),
                ..Filter::default()
            };
            if let Some(name) = &args.scenario
                && store.count(&of_scenario)? == 0
            {
                pagetide_scenario::find(name)?;
            }
            let scenario = args.scenario.as_deref();
            return Err(Usage::error(
                vocabulary().metric_meant(&args.metric, scenario),
            ));
        }
        other => other?,
    };
    if out.json {
        out.json(&history)?;
        return Ok(End::Done);
    }
    out.text(&terminal::history(&history, &args.metric, &out.text_style))?;
    Ok(End::Done)
}
