//! `pagetide plan`: what a campaign would run, and how long that would take.

use anyhow::Result;
use pagetide_campaign::{Basis, CellForecast, Forecast, RunError, forecast, inert};
use pagetide_report::date::about;
use pagetide_report::draw::Align;
use pagetide_report::terminal::Row;
use serde::Serialize;

use crate::building;
use crate::campaign_args::CampaignArgs;
use crate::command::run::wanted;
use crate::exit::End;
use crate::interrupt::Interrupt;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::{Output, harmless, say};
use crate::program_args::ProgramArgs;

/// Say what a campaign would run and how long it would take; runs nothing
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide plan campaigns/kernels.toml
  pagetide plan swapbench --kernel debian:bookworm --kernel debian:sid --json")]
pub struct Args {
    /// A campaign file (ending in .toml) or names of scenarios
    #[arg(
        required_unless_present_any = ["patch", "command"],
        value_name = "CAMPAIGN.toml|SCENARIO"
    )]
    what: Vec<String>,
    /// As if everything were run again
    #[arg(long, help_heading = "Running")]
    fresh: bool,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// Cells that a table shows; of a larger plan the first ones.
const SHOWN: usize = 100;

#[derive(Serialize)]
struct CellRow(CellForecast);

impl Row for CellRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("cell", Align::Left),
        ("trials", Align::Right),
        ("done", Align::Right),
        ("each", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        let cell = &self.0;
        let each = match cell.basis {
            Basis::Measured => cell.each.to_string(),
            Basis::Reckoned => format!("~{}", cell.each),
            Basis::Assumed => format!("{}?", cell.each),
        };
        vec![
            cell.label.clone(),
            cell.trials.to_string(),
            cell.found.to_string(),
            each,
        ]
    }
}

/// Plans.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut campaign = wanted(&args.what, &args.campaign, &args.program, places, &say)?;
    let interrupt = Interrupt::listen()?;
    let mut arena_args = args.arena.clone();
    // What boots, and how often, is known only of kernels that are there.
    building::build(&mut campaign, places, &mut arena_args, &interrupt, &say)?;
    let arena = places.arena(campaign.arena, &arena_args, &interrupt, say)?;
    let store = places.store()?;
    for text in inert(&campaign, arena.as_ref())? {
        say(&text);
    }
    let jobs = args.arena.jobs.map(usize::from);
    let cast = |take: &mut dyn FnMut(CellForecast)| {
        forecast(&campaign, arena.as_ref(), &store, jobs, args.fresh, take)
    };
    if out.json {
        // A first pass refuses what cannot run, so that no half of a document is written.
        cast(&mut |_| {})?;
        json(cast, out)?;
        return Ok(End::Done);
    }
    let (mut rows, mut more) = (Vec::new(), 0_u64);
    let (mut reckoned, mut assumed) = (false, false);
    let whole = cast(&mut |cell| {
        reckoned |= cell.basis == Basis::Reckoned;
        assumed |= cell.basis == Basis::Assumed;
        if rows.len() < SHOWN {
            rows.push(CellRow(cell));
        } else {
            more += 1;
        }
    })?;
    let most = if whole.at_most { "at most " } else { "" };
    let mut text = format!(
        "{}: {most}{} trials in the {} arena, {} have records, {} side by side\nvariants: {}\n\n",
        whole.name,
        whole.trials,
        whole.arena,
        whole.found,
        whole.side_by_side,
        whole.variants.join(", ")
    );
    text = harmless(&text);
    text.push_str(&pagetide_report::terminal::list(&rows, &out.look));
    if more > 0 {
        put!(text, "and {more} more cells: --json has all of them\n");
    }
    let boots = match whole.boots {
        0 => String::new(),
        1 => ", the boot of one guest with them".to_owned(),
        n => format!(", the boots of {n} guests with them"),
    };
    put!(text, "\n{most}{} until the end{boots}\n", about(whole.left));
    if reckoned {
        text.push_str(
            "~ has never run here: reckoned from its sizes and the speed of this machine\n",
        );
    }
    if assumed {
        text.push_str("? has never run here: a guess\n");
    }
    out.text(&text)?;
    Ok(End::Done)
}

/// Writes the plan as one JSON object, each cell as it comes.
fn json(
    cast: impl Fn(&mut dyn FnMut(CellForecast)) -> Result<Forecast, RunError>,
    out: Output,
) -> Result<()> {
    out.text("{\n  \"cells\": [")?;
    let (mut first, mut written) = (true, Ok(()));
    let whole = cast(&mut |cell| {
        if written.is_ok() {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            let cell = serde_json::to_string(&cell).unwrap_or_default();
            written = out.text(&format!("{comma}\n    {cell}"));
        }
    })?;
    written?;
    let rest = pagetide_report::json::pretty(&whole);
    out.text(&format!(
        "\n  ],\n{}",
        rest.trim_start()
            .trim_start_matches('{')
            .trim_start_matches('\n')
    ))
}
