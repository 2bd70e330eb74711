//! `pagetide plan`: shows what a campaign would run, and how long that would take.

use anyhow::Result;
use clap::Subcommand;
use pagetide_campaign::{CellForecast, Shard, forecast, inert, plan_shard, striped};
use pagetide_report::draw::clean::harmless;
use pagetide_report::json;
use pagetide_report::terminal::PlannedCell;

use crate::campaign_args::CampaignArgs;
use crate::command::power;
use crate::exit::End;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::{Output, say};
use crate::program_args::ProgramArgs;
use crate::session::Session;

/// Say what a campaign would run and how long it would take, without running or building anything
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_long_help = "\
Examples:
  pagetide plan campaigns/kernels.toml
  pagetide plan swapbench --kernel debian:bookworm --kernel debian:sid --json
  pagetide plan campaigns/quick.toml --shard 2/4")]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// A campaign file (ending in .toml) or names of scenarios
    #[arg(
        required_unless_present_any = ["patch", "command"],
        value_name = "CAMPAIGN.toml|SCENARIO"
    )]
    what: Vec<String>,
    /// Plan as if there were no records
    #[arg(long, help_heading = "Running")]
    fresh: bool,
    /// Number of trials of this part, such as 2/4, and the kernels and programs that it needs
    #[arg(long, value_name = "I/N", help_heading = "Running")]
    shard: Option<Shard>,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// Maximum number of cells in the table; only the first cells of a larger plan are shown.
const SHOWN_CELLS: usize = 100;

/// Subcommands of `plan` with options of their own.
#[derive(Subcommand, Debug)]
enum Other {
    Power(power::Args),
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    if let Some(Other::Power(args)) = &args.other {
        return power::run(args, places, out);
    }
    let session = Session::begin(places, &args.arena)?;
    let mut campaign = session.campaign(&args.what, &args.campaign, &args.program)?;
    let kernels = session.lab.forecast(&mut campaign)?;
    let arena = session.arena(campaign.arena)?;
    if let Some(shard) = args.shard {
        let plan = plan_shard(&campaign, arena.as_ref(), shard)?;
        out.show(&plan, || plan.text())?;
        return Ok(End::Done);
    }
    let store = places.store()?;
    let cannot_act = inert(&campaign, arena.as_ref())?;
    for text in striped(&campaign).iter().chain(&cannot_act) {
        say(text);
    }
    let jobs = args.arena.jobs.map(usize::from);
    let cast = |take: &mut dyn FnMut(CellForecast)| {
        let arena = arena.as_ref();
        forecast(&campaign, arena, &store, jobs, args.fresh, &kernels, take)
    };
    if out.json {
        // A first pass finds what cannot run, so that an error leaves no incomplete JSON document.
        cast(&mut |_| {})?;
        let stdout = std::io::stdout().lock();
        json::streamed(stdout, "cells", |put| cast(&mut |cell| put(&cell)))??;
        return Ok(End::Done);
    }
    let (mut rows, mut more) = (Vec::new(), 0_u64);
    let whole = cast(&mut |cell| {
        if rows.len() < SHOWN_CELLS {
            rows.push(PlannedCell {
                each: cell.each(),
                label: cell.label,
                trials: cell.trials,
                found: cell.found,
            });
        } else {
            more += 1;
        }
    })?;
    let mut text = harmless(&whole.head());
    text.push('\n');
    text.push_str(&pagetide_report::terminal::list(&rows, &out.text_style));
    if more > 0 {
        put!(text, "and {more} more cells: --json has all of them\n");
    }
    put!(text, "\n{}", whole.end());
    out.text(&text)?;
    Ok(End::Done)
}
