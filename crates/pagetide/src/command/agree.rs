//! `pagetide agree`: compares the effects of one campaign in several arenas.

use anyhow::Result;
use pagetide_compare::agreement::{Agrees, agreement};
use pagetide_report::terminal::agreement as shown;

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::Output;

/// Say whether the arenas agree: sign, size and interval of each effect in the exact arena and on the running kernel
///
/// A campaign that ran in the exact arena and with `--on host` has two runs, NAME and NAME-host. One name is enough.
/// The sign of an effect is none if its interval lies within 10 % of no effect, and open if it is not sure. If signs or
/// sizes differ, what differs between the arenas is listed below the table.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide run kv --limit 64M --set vm.swappiness=60 --vs vm.swappiness=10
  pagetide run kv --limit 64M --set vm.swappiness=60 --vs vm.swappiness=10 --on host
  pagetide agree
  pagetide agree quick quick-host --json

Exits with 0 if all signs agree, with 1 if a sign differs, else with 3.")]
pub struct Args {
    /// A campaign, or the campaigns of several arenas [default: the campaign that ran last]
    #[arg(value_name = "CAMPAIGN")]
    campaigns: Vec<String>,
    /// Also show metrics that decide in no arena
    #[arg(long)]
    all: bool,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let found = agreement(&store, &args.campaigns, args.all)?;
    out.show_quoting(&found, || shown::agreement(&found, &out.text_style))?;
    let has = |sign| found.rows.iter().any(|row| row.sign == sign);
    Ok(if has(Agrees::No) {
        End::Regressed
    } else if has(Agrees::Open) || found.rows.is_empty() {
        End::Open
    } else {
        End::Done
    })
}
