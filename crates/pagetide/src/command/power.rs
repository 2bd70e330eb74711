//! `pagetide power`: what effect would so many seeds find, by the noise that was seen.

use anyhow::Result;
use pagetide_compare::{Comparison, compare_campaign};
use pagetide_report::draw::Align;
use pagetide_report::terminal::{Row, list};
use pagetide_verdict::number::log_ratio;
use pagetide_verdict::power::{Campaign, Noise, detectable, pairs_needed};
use serde::Serialize;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;
use crate::pairs::pairs;

/// Probability with which an effect is to be found.
const WANTED: f64 = 0.8;
/// Most seeds that are thought of.
const MOST: usize = 400;
/// Fewest pairs that say something about noise.
const LEAST: usize = 3;

/// Say what effect so many seeds would find, and how many seeds an effect needs
///
/// By the noise of a campaign in the store (how much its effect differs from seed to seed), or by an assumed one.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide power
  pagetide power quick --seeds 12 --effect 2
  pagetide power --noise 1.5 --seeds 8")]
pub struct Args {
    /// Campaign whose noise is taken [default: the one that ran last]
    campaign: Option<String>,
    /// Seeds of each variant
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=400))]
    seeds: u16,
    /// Effect that is to be found, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    effect: f64,
    /// Assume normal noise of this many percent between the two sides of a pair, instead of a campaign's
    #[arg(long, value_name = "PERCENT", conflicts_with = "campaign")]
    noise: Option<f64>,
    /// Primary metrics that share the error rate [default: the campaign's, or 1]
    #[arg(long, value_name = "N")]
    primaries: Option<u16>,
}

#[derive(Serialize)]
struct Found {
    cell: String,
    metric: String,
    variant: String,
    pairs_seen: usize,
    /// Smallest effect found with the wanted probability, as a ratio less 1.
    detectable: Option<f64>,
    /// Seeds that the effect asked for needs.
    needed: Option<usize>,
    note: &'static str,
}

impl Row for Found {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("cell", Align::Left),
        ("metric", Align::Left),
        ("variant", Align::Left),
        ("finds", Align::Right),
        ("needs", Align::Right),
        ("", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        let finds = self.detectable.map_or_else(
            || "nothing".to_owned(),
            |effect| format!("{:.2} %", effect * 100.0),
        );
        let needs = self.needed.map_or_else(
            || format!("over {MOST} seeds"),
            |seeds| format!("{seeds} seeds"),
        );
        let (finds, needs) = match self.note {
            "" => (finds, needs),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        vec![
            self.cell.clone(),
            self.metric.clone(),
            self.variant.clone(),
            finds,
            needs,
            self.note.to_owned(),
        ]
    }
}

/// Answers.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    if !args.effect.is_finite() || args.effect <= 0.0 {
        return Err(Usage::error("--effect is a number of percent above 0"));
    }
    let rows = match args.noise {
        Some(noise) if noise.is_finite() && noise > 0.0 => {
            let deviation = (noise / 100.0).ln_1p();
            let mut row = Found {
                cell: format!("normal noise of {noise} %"),
                metric: "any".to_owned(),
                variant: "any".to_owned(),
                pairs_seen: 0,
                detectable: None,
                needed: None,
                note: "",
            };
            answer(&mut row, Noise::Normal { deviation }, args, 1)?;
            vec![row]
        }
        Some(_) => return Err(Usage::error("--noise is a number of percent above 0")),
        None => {
            let store = places.store()?;
            of_campaign(&compare_campaign(&store, args.campaign.as_deref())?, args)?
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
        WANTED * 100.0
    );
    text.push_str(&list(&rows, &out.look));
    out.text(&text)?;
    Ok(End::Done)
}

fn answer(row: &mut Found, noise: Noise, args: &Args, primaries: usize) -> Result<()> {
    let campaign = Campaign {
        pairs: usize::from(args.seeds),
        alpha: pagetide_compare::ALPHA,
        primaries: args.primaries.map_or(primaries, usize::from).max(1),
        noise,
        seed: 1,
    };
    row.detectable = detectable(&campaign, WANTED)?.map(f64::exp_m1);
    row.needed = pairs_needed(&campaign, (args.effect / 100.0).ln_1p(), WANTED, MOST)?;
    Ok(())
}

fn of_campaign(comparison: &Comparison, args: &Args) -> Result<Vec<Found>> {
    let primaries = comparison.deciding().count();
    let mut rows = Vec::new();
    for cell in &comparison.cells {
        for metric in cell.metrics.iter().filter(|metric| metric.primary) {
            for (column, variant) in comparison.columns.iter().enumerate().skip(1) {
                let pairs = pairs(cell, metric, column);
                let mut row = Found {
                    cell: cell.label.clone(),
                    metric: metric.name.clone(),
                    variant: variant.name.clone(),
                    pairs_seen: pairs.len(),
                    detectable: None,
                    needed: None,
                    note: "",
                };
                if pairs.len() < LEAST {
                    row.note = "too few pairs";
                } else if pairs.iter().any(|pair| pair.a <= 0.0 || pair.b <= 0.0) {
                    row.note = "values of zero have no ratio";
                } else {
                    let differences: Vec<f64> =
                        pairs.iter().map(|pair| log_ratio(pair.a, pair.b)).collect();
                    let first = differences[0];
                    if differences.iter().all(|d| (d - first).abs() < 1e-15) {
                        row.note = "no noise: any effect is found";
                    } else {
                        answer(&mut row, Noise::Observed { differences }, args, primaries)?;
                    }
                }
                rows.push(row);
            }
        }
    }
    Ok(rows)
}
