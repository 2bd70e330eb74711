//! `pagetide bisect`: finds the first version of the kernel that differs.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Id, builder::Resettable};
use pagetide_campaign::Site;
use pagetide_campaign::bisect::{Audience, BisectOutcome, BisectRequest};
use pagetide_record::ArenaKind;
use pagetide_report::terminal::bisect as shown;
use pagetide_store::shell;

use crate::campaign_args::CampaignArgs;
use crate::exit::{End, Usage};
use crate::judged::JudgedArgs;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::Output;
use crate::program_args::ProgramArgs;
use crate::session::{Session, typed};

/// Find the first kernel, or the first commit, that differs
///
/// Good and bad run first and must differ significantly. Then the versions in between are bisected; each is compared
/// with the good version using the same seeds. A version with an open result gets twice as many seeds, up to --seeds
/// [32]. A version is skipped if its result stays open, or if it does not build or boot. Trials with a record are not
/// run again, so the same command continues a stopped search.
#[derive(clap::Args, Debug)]
#[command(mut_arg("metric", |arg| arg.requires(Resettable::<Id>::Reset).value_name("NAME[=REGEX:higher|lower]")))]
#[command(after_long_help = "\
Examples:
  pagetide bisect --good debian:bookworm --bad debian:sid hot-cold --swap ssd
  pagetide bisect --source ~/linux --good v6.12 --bad HEAD hot-cold --log bisect.log

Without --source it searches the kernels of the cache by their releases, or those that --kernel names, in that order; with it the commits of a git
tree, which is only read. --metric NAME decides. The log is for `git bisect replay`.")]
pub struct Args {
    /// Kernel or revision without the difference
    #[arg(long, value_name = "K", help_heading = "Search")]
    good: String,
    /// Kernel or revision with the difference; with --source a descendant of the good one
    #[arg(long, value_name = "K", help_heading = "Search")]
    bad: String,
    /// File for the log of `git bisect` [default: bisect/NAME.log in the store]
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    log: Option<PathBuf>,
    /// A scenario, unless you give your own program
    #[arg(required_unless_present = "command", value_name = "SCENARIO")]
    what: Vec<String>,
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
    if args.arena.arena() == Some(ArenaKind::Host) {
        return Err(Usage::error(
            "bisect compares kernels, and --on host has only the kernel of this machine: leave --on out, or compare settings with \
             `pagetide run … --vs NAME=VALUE`"
                .to_owned(),
        ));
    }
    let mut session = Session::begin(places, &args.arena)?;
    let mut program = args.program.clone();
    // `--metric` with `=` defines a metric that is read from the program's output; without `=` it names a metric of the
    // scenario.
    let named = |text: &mut String| !text.contains('=');
    let request = BisectRequest {
        good: args.good.clone(),
        bad: args.bad.clone(),
        among: args.campaign.kernels().to_vec(),
        metric: program.metric.extract_if(.., named).last(),
        name: args.campaign.name().map(str::to_owned),
    };
    let campaign = session.campaign(&args.what, &args.campaign, &program)?;
    let plan = session.lab.bisect(campaign, &request)?;
    let campaign = &plan.search.campaign;
    let arena = session.arena(campaign.arena)?;
    let store = places.store()?;
    let say = |text: &str| session.progress.say(text);
    say(&session.lab.cost(&plan, arena.as_ref(), &store)?);
    let kept = store.folder().join(format!("bisect/{}.log", campaign.name));
    let logs: Vec<PathBuf> = args.log.iter().cloned().chain([kept]).collect();
    let audience = Audience {
        logs: &logs,
        say: &|step| say(&shown::step_text(step)),
    };
    let search = |site: Site<'_>| session.lab.search(&plan, site, &audience);
    let is_stopped = |outcome: &BisectOutcome| matches!(outcome, BisectOutcome::Stopped(_));
    let found = match session.search(campaign, search, is_stopped)? {
        BisectOutcome::Found(found) => *found,
        BisectOutcome::Nothing(why) => {
            say(&why);
            return Ok(End::Open);
        }
        BisectOutcome::Stopped(steps) => {
            say(&format!(
                "stopped after {steps} steps; the same command goes on from here"
            ));
            return Ok(End::Unable);
        }
    };
    let (pair, title, command) = (&found.comparison, found.campaign.clone(), shell(&typed()));
    args.judged
        .show(&store, pair, Some(&found), title, command, out)?;
    Ok(if found.is_one() { End::Done } else { End::Open })
}
