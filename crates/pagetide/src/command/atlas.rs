//! `pagetide ideal atlas`: shows how far each kernel is from the best possible, by workload and memory size.

use anyhow::{Context, Result};
use pagetide_report::terminal::atlas::{draw, nothing, places_of};

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::Output;

/// Show each kernel's distance from the best possible, from all records with known references
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Example:
  pagetide run smooth-sin-random zipf loop --kernel debian:bookworm --kernel debian:sid --memory 16M --memory 32M
  pagetide ideal atlas
  pagetide ideal atlas --svg > atlas.svg")]
pub struct Args {
    /// Only this scenario
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Draw a picture: SVG, for a file
    #[arg(long)]
    svg: bool,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let only = args.scenario.as_deref();
    only.map(pagetide_scenario::find).transpose()?;
    let all = places_of(&places.store()?, only)?;
    if out.json {
        out.json(&all)?;
    } else if args.svg {
        out.text(&pagetide_report::html::atlas(&all).with_context(nothing)?)?;
    } else {
        out.text(&draw(&all, &out.text_style))?;
    }
    Ok(End::Done)
}
