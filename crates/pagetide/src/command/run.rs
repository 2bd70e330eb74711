//! `pagetide run`: runs a campaign file or scenarios and judges the results.

use anyhow::Result;
use pagetide_campaign::{CONTROL, Options, PATCHED, Shard, inert, run as run_campaign, striped};
use pagetide_compare::covered::coverage;
use pagetide_compare::{compare_note, medians, show_campaign, times_needed};
use pagetide_lab::vocabulary;
use pagetide_report::terminal::coverage::below_verdict;
use pagetide_report::terminal::{layout, next};
use pagetide_store::{CampaignNote, Store, shell};

use crate::campaign_args::CampaignArgs;
use crate::exit::End;
use crate::judged::JudgedArgs;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::{Output, say};
use crate::program_args::ProgramArgs;
use crate::session::{Session, typed};

/// Relative difference in time (ratio minus 1) for which the necessary number of repetitions is shown before a run.
const TOLD_EFFECT: f64 = 0.05;

/// Run a campaign file, or scenarios under variants given here, and judge the results
///
/// An interrupted campaign continues: trials that have a record are not run again.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide run campaigns/quick.toml
  pagetide run smooth-sin-random --kernel debian:bookworm --kernel debian:sid --swap ssd
  pagetide run hot-cold --patch my.patch
  pagetide run swapbench --set vm.page-cluster=0 --vs vm.page-cluster=3 --swap ssd:80us
  pagetide run linear --memory 24M -p 'pages=2 * memory' --seeds 2
  pagetide run hot-cold --kernel debian:sid --swap ssd --vs swap=zram --vs swap=zswap+ssd
  pagetide run contswap --as-written --scale 0.02
  pagetide run contswap --swap disk:8ms,40MB/s --set vm.page-cluster=3 --vs vm.page-cluster=0
  pagetide run campaigns/relatives/swapbench.toml --as paper
  pagetide run swapbench --on host --memory 64M --vs vm.swappiness=10
  pagetide run campaigns/quick.toml --shard 2/4 --store shard-2
  pagetide run --memory 64M --vs lru_gen/enabled=0 --file numbers -- sort -n numbers

Kernels: debian:SUITE, debian:SUITE/SERIES, deb:PACKAGE[=VERSION][/SUITE], a .deb file, image:FILE[,modules:DIR],
a built tree, a bzImage, or a kernel in the cache by release or digest (`pagetide kernel list`).

Ctrl-C stops the running trials; what is stored stays, and the same command goes on from there.")]
pub struct Args {
    /// A campaign file (ending in .toml) or names of scenarios [default with --patch: five scenarios that depend on the
    /// decisions of reclaim, swap and compaction]
    #[arg(
        required_unless_present_any = ["patch", "command"],
        value_name = "CAMPAIGN.toml|SCENARIO"
    )]
    what: Vec<String>,
    /// Run everything again, including trials that have a record
    #[arg(long, help_heading = "Running")]
    fresh: bool,
    /// Run all trials, even if those of the first seeds are all invalid for the same reason
    #[arg(long, help_heading = "Running")]
    keep_going: bool,
    /// Run only this part of the trials, such as 2/4, without a verdict; `store merge` combines the stores of all parts
    #[arg(long, value_name = "I/N", help_heading = "Running")]
    shard: Option<Shard>,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    arena: ArenaArgs,
    #[command(flatten)]
    judged: JudgedArgs,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut session = Session::begin(places, &args.arena)?;
    let mut campaign = session.campaign(&args.what, &args.campaign, &args.program)?;
    let cells: Vec<_> = campaign.cells().collect();
    args.judged
        .check(cells.iter().map(|cell| cell.scenario.as_str()))?;
    let compared = campaign.variants.len() > 1;
    if let Some(text) = session.cost_of_builds(&campaign, args.fresh)? {
        session.progress.say(&text);
    }
    let built = session.build(&mut campaign)?;
    for same in &built.same {
        session.progress.say(same);
    }
    if compared && built.settles(&campaign) {
        return Ok(if built.failed > 0 {
            End::Unable
        } else {
            End::Done
        });
    }
    let arena = session.arena(campaign.arena)?;
    let mut store = places.store()?;
    if let Some(text) = campaign.power(&vocabulary()) {
        session.progress.say(&text);
    }
    if arena.has_noise() {
        say_noise(&store, &campaign.name, &session)?;
    }
    let cannot_act = inert(&campaign, arena.as_ref())?;
    for text in striped(&campaign).iter().chain(&cannot_act) {
        session.progress.say(text);
    }
    let options = Options {
        keep_going: args.keep_going,
        shard: args.shard,
        ..session.options(args.fresh)
    };
    let outcome = session.run(
        &campaign.name,
        |state| run_campaign(&campaign, arena.as_ref(), &mut store, &options, state),
        |outcome| outcome.stopped,
    )?;
    for text in arena.remarks() {
        session.progress.say(&text);
    }
    if outcome.futile.is_some() {
        return Ok(args.judged.nothing());
    }
    if outcome.stopped && args.arena.detach && pagetide_lab::interrupt_code().is_none() {
        session
            .progress
            .say("the job goes on; the same command without --detach waits for it and judges");
        return Ok(End::Done);
    }
    if outcome.stopped {
        session.progress.say(&format!(
            "stopped: {} of {} trials have their records; the same command goes on from here",
            outcome.tally.done(),
            outcome.tally.total
        ));
        return Ok(End::Unable);
    }
    if let Some(shard) = args.shard {
        let (done, invalid) = (outcome.tally.done(), outcome.tally.invalid);
        session.progress.say(&format!(
            "shard {shard} is done: its {done} trials have records in {}{}; when all shards are merged, the same command without --shard judges",
            store.folder().display(),
            if invalid > 0 { format!(", {invalid} of them invalid") } else { String::new() }
        ));
        return Ok(End::Done);
    }
    let note = outcome.note;
    let mut is_open = false;
    let end = if note.variants.len() > 1 || args.judged.is_paper() {
        let comparison = match note.variants.len() {
            1 => show_campaign(&store, Some(&note.id()))?,
            _ => compare_note(&store, &note)?,
        };
        is_open = comparison.open() > 0;
        let (title, command) = (note.id(), shell(&typed()));
        args.judged
            .show(&store, &comparison, None, title, command, out)?
    } else {
        show_medians(&store, &note, out)?
    };
    if args.judged.is_table(out) {
        if let Some(text) = layout::of_campaign(&store, &note, CONTROL, PATCHED)? {
            out.text(&text)?;
        }
        out.text(&below_verdict(&coverage(&store, &note)?, &out.text_style))?;
        out.text(&next(&store, &note, is_open, &typed()))?;
    }
    Ok(if built.failed > 0 { End::Unable } else { end })
}

/// For an arena with noise: prints which metrics decide, and how many repetitions a difference in time would need
/// according to the records so far.
fn say_noise(store: &Store, campaign: &str, session: &Session) -> Result<()> {
    session.progress.say(
        "counts and processor time decide here; times depend on the load of this machine, and are shown below them",
    );
    for need in times_needed(store, campaign, TOLD_EFFECT)? {
        session.progress.say(&format!(
            "{} of {} varied by {:.0} % here: a difference of {:.0} % would need {} repeats of each variant",
            need.metric,
            need.cell,
            need.noise * 100.0,
            TOLD_EFFECT * 100.0,
            need.repeats
        ));
    }
    Ok(())
}

/// Shows the medians of the primary metrics of a campaign with a single variant, and its invalid trials.
fn show_medians(store: &Store, note: &CampaignNote, out: Output) -> Result<End> {
    let (medians, invalid) = medians(store, note)?;
    for trial in &invalid {
        say(&trial.to_string());
    }
    out.list(&medians, "no trial gave a number")?;
    Ok(if invalid.is_empty() {
        End::Done
    } else {
        End::Open
    })
}
