//! `pagetide compare`: compares two sides, or all variants of a campaign.

use anyhow::Result;

use crate::accept_args::AcceptArgs;
use crate::command::explain::why;
use crate::exit::End;
use crate::judged::JudgedArgs;
use crate::lab::StoreArgs;
use crate::output::Output;

/// Compare B with A, or all variants of a campaign with its first variant
///
/// A and B are variants of the last campaign, CAMPAIGN:VARIANT, kernel releases, or records. With one name, the
/// variants of that campaign are compared. Without names, the variants of the campaign that ran last are compared.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide compare
  pagetide compare mglru-off mglru-on --as mail
  pagetide compare quick:mglru-off kernels:6.12 --anyway
  pagetide compare quick --as ktap > results.tap
  pagetide compare mglru-off mglru-on --why
  pagetide compare paper-swapbench --as paper")]
pub struct Args {
    /// The baseline, or a campaign
    a: Option<String>,
    /// The side that is compared with the baseline
    b: Option<String>,
    /// Compare even if more than the variant differs
    #[arg(long, requires = "b")]
    anyway: bool,
    /// Explain instead why the sides differ in time: mechanisms with the largest effect first, each with its evidence
    ///
    /// Time is attributed from the traces of observed passes (`--observe`, or `observe = 3` in a campaign file).
    /// Without traces, only time off the CPU is attributed, and counters that changed are listed.
    #[arg(long, conflicts_with_all = ["format", "all", "pictures", "tails"])]
    why: bool,
    #[command(flatten)]
    accept: AcceptArgs,
    #[command(flatten)]
    judged: JudgedArgs,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let names = args
        .accept
        .names(args.a.as_deref(), args.b.as_deref(), args.anyway);
    if args.why {
        return why(&names, places, out);
    }
    let store = places.store()?;
    // The papers' tables contain no judgement, so a single variant is enough.
    let comparison = if args.judged.is_paper() {
        names.show(&store)?
    } else {
        names.compare(&store)?
    };
    let title = names.title(&comparison);
    let command = names.origin(&store, &comparison, "compare")?;
    args.judged
        .show(&store, &comparison, None, title, command, out)
}
