//! `pagetide explain`: the former name of `pagetide compare --why`.

use anyhow::Result;
use pagetide_compare::Names;
use pagetide_compare::explain::explain_with_accounts;
use pagetide_report::why::explanations;

use crate::accept_args::AcceptArgs;
use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::Output;

/// Say why B differs from A in time: mechanisms ranked by their share of the difference, each with its evidence
///
/// A and B are named as for `pagetide compare`. Time is attributed from traces of observed passes (`--observe`, or
/// `observe = 3` in a campaign file); without them only time off the CPU is attributed, and changed counters are
/// listed.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide compare --why
  pagetide compare mglru-off mglru-on --why
  pagetide compare quick --why --json | jq '.[].explanation.findings[0]'")]
pub struct Args {
    /// The baseline, or a campaign
    a: Option<String>,
    /// The side that is compared with the baseline
    b: Option<String>,
    /// Explain even if more than the variant differs
    #[arg(long, requires = "b")]
    anyway: bool,
    #[command(flatten)]
    accept: AcceptArgs,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let names = args
        .accept
        .names(args.a.as_deref(), args.b.as_deref(), args.anyway);
    why(&names, places, out)
}

/// Prints the reasons why the sides of a comparison differ.
pub fn why(names: &Names, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let mut comparison = names.compare(&store)?;
    comparison.explanations = explain_with_accounts(&store, &comparison)?;
    out.show(&comparison.explanations, || {
        explanations(&comparison, &out.text_style)
    })?;
    Ok(End::Done)
}
