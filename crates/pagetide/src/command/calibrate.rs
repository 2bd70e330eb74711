//! `pagetide calibrate`: compares a variant with variants without effect, to measure an arena's noise and false alarms.

use anyhow::Result;
use pagetide_campaign::run as run_campaign;
use pagetide_compare::{CalibrationNote, compare_note};
use pagetide_lab::vocabulary;
use pagetide_quantity::command::in_backticks;
use pagetide_report::terminal::calibration;

use crate::campaign_args::CampaignArgs;
use crate::exit::{End, Usage};
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::Output;
use crate::session::Session;

/// Compare a variant with variants that have no effect, to measure the arena's noise and how often it gives false
/// alarms
///
/// One of these variants differs from the first in a boot argument that nothing reads, another in a setting with its
/// default value. This has no effect, but no two trials are identical. The result is kept in the store and shown below
/// verdicts on the same cells.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide calibrate smooth-sin-random --memory 24M
  pagetide calibrate swapbench --campaigns 20 --seeds 6
  pagetide calibrate --show")]
pub struct Args {
    /// Scenarios
    #[arg(value_name = "SCENARIO", required_unless_present = "show")]
    scenarios: Vec<String>,
    /// Number of campaigns for each variant without effect
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    campaigns: u32,
    /// Show the last calibration; run nothing
    #[arg(long)]
    show: bool,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut store = places.store()?;
    if args.show {
        let arena = args.arena.arena().unwrap_or_default();
        let Some(note) = CalibrationNote::read(&store, arena)? else {
            return Err(Usage::error(format!(
                "nothing was calibrated in this store: {} does it for a scenario",
                in_backticks("calibrate swapbench")
            )));
        };
        return show(&note, out);
    }
    let mut request = args.campaign.request()?;
    request.adjustment.arena = args.arena.arena();
    let mut campaign = request.campaign(&args.scenarios, &vocabulary())?;
    let seeds = campaign.sampling.until.cap();
    campaign.calibrate(args.campaigns)?;

    let session = Session::begin(places, &args.arena)?;
    let arena = session.arena(campaign.arena)?;
    let options = session.options(false);
    let outcome = run_campaign(
        &campaign,
        arena.as_ref(),
        &mut store,
        &options,
        &session.progress,
    );
    session.progress.finish();
    let outcome = outcome?;
    if outcome.stopped {
        session
            .progress
            .say("stopped: the same command goes on from here");
        return Ok(End::Unable);
    }
    let note = outcome.note;
    let comparison = compare_note(&store, &note)?;
    let note = CalibrationNote::of(&comparison, arena.kind(), seeds)?;
    note.write(&store)?;
    show(&note, out)
}

fn show(note: &CalibrationNote, out: Output) -> Result<End> {
    out.show(note, || calibration(note, &out.text_style))?;
    Ok(End::Done)
}
