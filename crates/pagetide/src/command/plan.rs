//! `pagetide plan`: what a campaign would run, and how long that would take.

use anyhow::Result;
use pagetide_campaign::{Basis, CellForecast, forecast};
use pagetide_report::draw::Align;
use pagetide_report::terminal::Row;
use serde::Serialize;

use crate::campaign_of::CampaignArgs;
use crate::command::run::asked_for;
use crate::exit::End;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::Output;
use crate::when::about;

/// Say what a campaign would run and how long it would take; runs nothing
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide plan campaigns/kernels.toml
  pagetide plan swapbench --kernel debian:bookworm --kernel debian:sid --json")]
pub struct Args {
    /// A campaign file (ending in .toml) or names of scenarios
    #[arg(required = true, value_name = "CAMPAIGN.toml|SCENARIO")]
    what: Vec<String>,
    /// As if everything were run again
    #[arg(long, help_heading = "Running")]
    fresh: bool,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    arena: ArenaArgs,
}

#[derive(Serialize)]
struct Planned(CellForecast);

impl Row for Planned {
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
    let campaign = asked_for(&args.what, &args.campaign)?;
    let arena = places.arena(campaign.arena, &args.arena, |text| eprintln!("{text}"))?;
    let store = places.store()?;
    let jobs = args.arena.jobs.map(usize::from);
    let forecast = forecast(&campaign, arena.as_ref(), &store, jobs, args.fresh)?;
    if out.json {
        out.json(&forecast)?;
        return Ok(End::Done);
    }
    let most = if forecast.at_most { "at most " } else { "" };
    let mut text = format!(
        "{}: {most}{} trials in the {} arena, {} have records, {} side by side\nvariants: {}\n\n",
        forecast.name,
        forecast.trials,
        forecast.arena,
        forecast.found,
        forecast.side_by_side,
        forecast.variants.join(", ")
    );
    let assumed = forecast.cells.iter().any(|c| c.basis == Basis::Assumed);
    let left = about(forecast.left);
    let rows: Vec<Planned> = forecast.cells.into_iter().map(Planned).collect();
    text.push_str(&pagetide_report::terminal::list(&rows, &out.look));
    put!(text, "\n{most}{left} until the end\n");
    if assumed {
        text.push_str("? has never run here: a guess\n");
    }
    out.text(&text)?;
    Ok(End::Done)
}
