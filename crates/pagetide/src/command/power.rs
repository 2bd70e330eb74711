//! `pagetide plan power`: shows the effect that a number of seeds would find, given the measured noise.

use anyhow::Result;
use pagetide_compare::{PowerQuestion, compare_campaign};
use pagetide_report::terminal::list;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Statistical power: probability with which an effect must be found.
const PROBABILITY: f64 = 0.8;

/// Show the effect that a number of seeds would find, and the number of seeds that an effect needs
///
/// It uses the noise of a campaign in the store (how much the effect differs between seeds), or an assumed noise.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide plan power
  pagetide plan power quick --seeds 12 --effect 2
  pagetide plan power --noise 1.5 --seeds 8")]
pub struct Args {
    /// Campaign whose noise is used [default: the one that ran last]
    campaign: Option<String>,
    /// Seeds of each variant
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=400))]
    seeds: u16,
    /// Effect to find, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    effect: f64,
    /// Assume normal noise of this many percent between the two sides of a pair, instead of a campaign's
    #[arg(long, value_name = "PERCENT", conflicts_with = "campaign")]
    noise: Option<f64>,
    /// Primary metrics that share the error rate [default: the campaign's, or 1]
    #[arg(long, value_name = "N")]
    primaries: Option<u16>,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    if !args.effect.is_finite() || args.effect <= 0.0 {
        return Err(Usage::error("--effect is a number of percent above 0"));
    }
    let question = PowerQuestion {
        seeds: args.seeds.into(),
        effect: args.effect / 100.0,
        probability: PROBABILITY,
        primaries: args.primaries.map(usize::from),
    };
    let rows = match args.noise {
        Some(noise) if noise.is_finite() && noise > 0.0 => {
            vec![question.for_normal_noise(noise / 100.0)?]
        }
        Some(_) => return Err(Usage::error("--noise is a number of percent above 0")),
        None => {
            let comparison = compare_campaign(&places.store()?, args.campaign.as_deref())?;
            question.for_comparison(&comparison)?
        }
    };
    if out.json {
        out.json(&rows)?;
        return Ok(End::Done);
    }
    let mut text = format!(
        "What {} seeds find, and what an effect of {} % needs, each with {:.0} % probability:\n\n",
        args.seeds,
        args.effect,
        PROBABILITY * 100.0
    );
    text.push_str(&list(&rows, &out.text_style));
    out.text(&text)?;
    Ok(End::Done)
}
