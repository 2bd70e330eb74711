//! `pagetide show`: shows one record in full.

use std::io::copy;

use anyhow::Result;
use pagetide_compare::observation::observed;
use pagetide_compare::{ObservationError, observation};
use pagetide_report::terminal::show::{has_section, presence, show};
use pagetide_report::{terminal, timeline, trace};

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Show a record: its origin, its results, and what depends on the machine and the time
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide show 3f2a
  pagetide show 3f2a --json | jq .results.metrics
  pagetide show 3f2a --reclaim
  pagetide show 3f2a --timeline > timeline.json
  pagetide show 3f2a --series pages-2 > pages.csv")]
pub struct Args {
    /// ID of the record, or its first digits
    record: String,
    /// Show reclaim statistics by row, time by part, and the effect of tracing, from the observed pass of this trial
    #[arg(long, conflicts_with_all = ["series", "blob"])]
    reclaim: bool,
    /// Write the timeline of the observed pass for Perfetto's viewer or chrome://tracing: reclaim, stalls, kswapd,
    /// processes and counters
    #[arg(long, conflicts_with_all = ["reclaim", "series", "blob"])]
    timeline: bool,
    /// Write this series as comma-separated values
    #[arg(long, value_name = "NAME", conflicts_with = "blob")]
    series: Option<String>,
    /// Write the content of this blob
    #[arg(long, value_name = "NAME")]
    blob: Option<String>,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let row = store.find(&args.record)?;
    let reader = store.load(&row.id)?;
    if let Some(name) = &args.series {
        has_section(&reader, "series", name)?;
        let series = reader.series(name)?;
        pagetide_report::csv::series(std::io::stdout().lock(), &series)?;
    } else if let Some(name) = &args.blob {
        has_section(&reader, "blob", name)?;
        copy(&mut reader.blob(name)?, &mut std::io::stdout().lock())?;
    } else if args.timeline {
        let Some(observed) = observed(&store, &row)? else {
            return Err(Usage::error(format!(
                "record {} has no observed pass: run the same campaign with --observe",
                row.id
            )));
        };
        let timeline = timeline::timeline(&observed)?;
        trace::write(std::io::stdout().lock(), &timeline)?;
    } else if args.reclaim {
        let seen = match observation(&store, &row) {
            Err(why @ ObservationError::NotObserved { .. }) => {
                return Err(Usage::error(why.to_string()));
            }
            seen => seen?,
        };
        if out.json {
            out.json(&seen)?;
        } else {
            out.text(&terminal::observation(
                &seen,
                &row.subject(),
                &out.text_style,
            ))?;
        }
    } else if out.json {
        out.json(reader.record())?;
    } else {
        out.text(&show(reader.record(), &presence(&reader)?, &out.text_style))?;
        let tiers = pagetide_report::tiers::tables(&reader)?;
        out.text(&terminal::tiers(&tiers, &out.text_style))?;
        if !reader.record().subject.nodes.is_default()
            && let Some(observed) = observed(&store, &row)?
        {
            let memories = pagetide_report::nodes::over_time(&observed)?;
            out.text(&terminal::nodes(&memories, &out.text_style))?;
        }
    }
    Ok(End::Done)
}
