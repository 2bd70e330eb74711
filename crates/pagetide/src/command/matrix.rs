//! `pagetide matrix`: finds which settings matter to a program or scenario, and which to choose.

use anyhow::Result;
use pagetide_campaign::matrix::{MatrixOutcome, MatrixRequest, matrix};
use pagetide_lab::{facts, vocabulary};
use pagetide_report::terminal::matrix as shown;

use crate::campaign_args::CampaignArgs;
use crate::exit::End;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::Output;
use crate::program_args::ProgramArgs;
use crate::session::Session;

/// Find which settings matter to a program or scenario, and which to choose: swap, MGLRU, swappiness, read-ahead of
/// swap, huge pages
///
/// Each setting has two values: lru_gen/enabled=7,0 vm.swappiness=10,150 vm.page-cluster=3,0 thp/enabled=always,never,
/// and the settings of --vary. For each kind of swap (zram, zswap, ssd, or the kinds of --swap), a two-level fractional
/// factorial design of these settings runs with every seed. With --vary swap=A,B or swap-size=A,B there is only one
/// design, in which swap is one of the settings. It shows how swap and the other settings act together. Then the
/// defaults, the settings that significantly help, and the fastest run are repeated with new seeds. Settings that the
/// kernel lacks are left out, and their names are printed. Without --kernel, a kernel is chosen that has all kinds of
/// swap that you name.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide matrix --memory 16M --file numbers -- sort numbers
  pagetide matrix --memory 16M --only --vary vm.page-cluster=3,0 --swap ssd --file numbers -- sort numbers
  pagetide matrix --memory 16M --only --vary swap=zram,zram:zstd --vary vm.page-cluster=3,0 --file numbers -- sort numbers
  pagetide matrix kv --seeds 3 --json

The design has resolution IV (Box and Hunter 1961): no interaction of two settings shows as the effect of a third. Effects are paired by
seed, with Student's interval of 95 %; those called sure are so after correction for the number of effects (Holm 1979).")]
pub struct Args {
    /// A scenario, unless you give your own program
    #[arg(required_unless_present = "command", value_name = "SCENARIO")]
    what: Vec<String>,
    /// Try only the settings of --vary
    #[arg(long, help_heading = "Search")]
    only: bool,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut session = Session::begin(places, &args.arena)?;
    let mut words = args.campaign.clone();
    let (vary, only) = (words.take_vary(), args.only);
    let mut campaign = session.campaign_of_search("matrix", &args.what, &words, &args.program)?;
    if session.build(&mut campaign)?.failed > 0 {
        return Ok(End::Unable);
    }
    // If the user gives kernels to build, no other kernel may be chosen.
    let may_choose_kernel =
        campaign.variants[0].kernel == vocabulary().kernel && args.campaign.kernels().is_empty();
    let facts = facts(&campaign.scenarios[0])?;
    let request = MatrixRequest {
        vary,
        only,
        may_choose_kernel,
    };
    let asked = request.matrix(campaign, facts.primary)?;
    let campaign = asked.campaign.clone();
    let say = |text: &str| session.progress.say(text);
    let outcome = session.search(
        &campaign,
        |site| matrix(asked, site, &say),
        |outcome| matches!(outcome, MatrixOutcome::Stopped),
    )?;
    let MatrixOutcome::Found(found) = outcome else {
        session.progress.say(shown::STOPPED);
        return Ok(End::Unable);
    };
    out.show_quoting(&*found, || shown::matrix(&found, &out.text_style))?;
    Ok(End::Done)
}
