//! `pagetide calibrate`: a variant against itself, to measure an arena's noise and its false alarms.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pagetide_campaign::{Options, Until, run as run_campaign};
use pagetide_compare::{Cell, Comparison, compare_note};
use pagetide_quantity::Nanos;
use pagetide_record::ArenaKind;
use pagetide_report::draw::Align;
use pagetide_report::terminal::{Row, list};
use pagetide_store::Store;
use pagetide_verdict::calibrate::{Calibration, calibrate, split};
use pagetide_verdict::judgement::EffectKind;
use pagetide_verdict::sample::Scale;
use pagetide_verdict::{Data, Family, MetricSample};
use serde::{Deserialize, Serialize};

use crate::campaign_of::CampaignArgs;
use crate::exit::{End, Usage};
use crate::interrupt::Interrupt;
use crate::lab::{ArenaArgs, StoreArgs, maker};
use crate::output::Output;
use crate::pairs::pairs;
use crate::progress::Progress;
use crate::vocabulary::vocabulary;
use crate::when::now;

/// Seed of whatever the statistics draw.
const SEED: u64 = 1;

/// Compare a variant with itself: the arena's noise, and how often it raises a false alarm
///
/// The result is kept with the store and shown under verdicts of that arena.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide calibrate smooth-sin-random --memory 24M
  pagetide calibrate swapbench --campaigns 20 --seeds 6
  pagetide calibrate --show")]
pub struct Args {
    /// Scenarios
    #[arg(value_name = "SCENARIO", required_unless_present = "show")]
    scenarios: Vec<String>,
    /// Campaigns of a variant against itself
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    campaigns: u32,
    /// Show the last calibration; runs nothing
    #[arg(long)]
    show: bool,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// What is kept with the store.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    /// When it was measured, nanoseconds since 1970.
    measured: Nanos,
    /// The arena.
    arena: ArenaKind,
    /// Seeds of each campaign.
    seeds: u32,
    /// By cell.
    cells: Vec<(String, Calibration)>,
}

impl Kept {
    fn path(store: &Store, arena: ArenaKind) -> PathBuf {
        store.folder().join(format!("calibration-{arena}.json"))
    }

    /// The last calibration of this arena; `None` where there was none.
    pub fn read(store: &Store, arena: ArenaKind) -> Result<Option<Self>> {
        let path = Self::path(store, arena);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context(|| format!("reading {}", path.display()))?,
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .with_context(|| format!("reading {}: calibrate again", path.display()))
    }

    fn write(&self, store: &Store) -> Result<()> {
        let path = Self::path(store, self.arena);
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let write = |path: &Path| -> std::io::Result<()> {
            fs::write(path, pagetide_report::json::pretty(self))?;
            fs::rename(path, Self::path(store, self.arena))
        };
        write(&new).with_context(|| format!("writing {}", path.display()))
    }

    /// In one line, for under a table of verdicts.
    pub fn line(&self) -> String {
        let campaigns: u64 = self.cells.iter().map(|(_, c)| c.campaigns).sum();
        let alarms: u64 = self.cells.iter().map(|(_, c)| c.false_alarms).sum();
        let metrics = || self.cells.iter().flat_map(|(_, c)| &c.metrics);
        let (pairs, identical) = metrics().fold((0, 0), |(pairs, identical), metric| {
            (pairs + metric.pairs, identical + metric.identical)
        });
        let noise = if pairs == identical {
            "every pair identical".to_owned()
        } else {
            format!("{identical} of {pairs} pairs of values identical")
        };
        format!(
            "Calibrated {}: {alarms} false alarms in {campaigns} campaigns of a variant against itself, {noise}.",
            crate::when::ago(self.measured)
        )
    }
}

#[derive(Serialize)]
struct Noise {
    cell: String,
    metric: String,
    pairs: u64,
    identical: u64,
    deviation: String,
    bias: String,
    false_claims: u64,
}

impl Row for Noise {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("cell", Align::Left),
        ("metric", Align::Left),
        ("pairs", Align::Right),
        ("identical", Align::Right),
        ("noise", Align::Right),
        ("bias", Align::Right),
        ("false claims", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.cell.clone(),
            self.metric.clone(),
            self.pairs.to_string(),
            self.identical.to_string(),
            self.deviation.clone(),
            self.bias.clone(),
            self.false_claims.to_string(),
        ]
    }
}

/// Calibrates.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut store = places.store()?;
    if args.show {
        let Some(kept) = Kept::read(&store, ArenaKind::default())? else {
            return Err(Usage::error(
                "nothing was calibrated in this store: `pagetide calibrate SCENARIO` does it",
            ));
        };
        return show(&kept, out);
    }
    let mut campaign = args.campaign.campaign(&args.scenarios, &vocabulary())?;
    if campaign.variants.len() > 1 {
        return Err(Usage::error(
            "a calibration compares one variant with itself: give one --kernel and no --vs",
        ));
    }
    let mut again = campaign.variants[0].clone();
    again.name = format!("{} again", again.name);
    campaign.variants.push(again);
    campaign.name = format!("calibrate-{}", campaign.name);
    let seeds = campaign.sampling.until.cap();
    campaign.sampling.until = Until::Blocks(seeds.saturating_mul(args.campaigns));

    let progress = Progress::new(Interrupt::listen()?);
    let say = progress.clone();
    let arena = places.arena(campaign.arena, &args.arena, move |text| say.say(text))?;
    let options = Options {
        jobs: args.arena.jobs.map(usize::from),
        fresh: false,
        maker: &maker,
    };
    let outcome = run_campaign(&campaign, arena.as_ref(), &mut store, &options, &progress);
    progress.finish();
    let outcome = outcome?;
    if outcome.stopped {
        progress.say("stopped: the same command goes on from here");
        return Ok(End::Unable);
    }
    let Some(note) = store.campaign(&outcome.campaign)? else {
        anyhow::bail!(
            "the note of campaign {} is gone: run it again",
            outcome.campaign
        );
    };
    let comparison = compare_note(&store, &note)?;
    let kept = Kept {
        measured: now(),
        arena: arena.kind(),
        seeds,
        cells: comparison
            .cells
            .iter()
            .map(|cell| of_cell(&comparison, cell, seeds))
            .collect::<Result<_>>()?,
    };
    kept.write(&store)?;
    show(&kept, out)
}

/// Cuts a cell's pairs into campaigns and judges each.
fn of_cell(comparison: &Comparison, cell: &Cell, seeds: u32) -> Result<(String, Calibration)> {
    let metrics = cell
        .metrics
        .iter()
        .map(|row| MetricSample {
            name: row.name.clone(),
            unit: format!("{:?}", row.unit).to_lowercase(),
            direction: row.direction,
            primary: row.primary,
            margin: None,
            scale: Scale::Auto,
            data: Data::Paired {
                pairs: pairs(cell, row, 1),
            },
        })
        // A metric that some kernel lacks has no pairs, and would leave no campaign at all.
        .filter(|sample| !matches!(&sample.data, Data::Paired { pairs } if pairs.is_empty()))
        .collect();
    let mut long = Family::new(SEED, metrics);
    long.alpha = comparison.alpha;
    let seeds = usize::try_from(seeds).unwrap_or(usize::MAX);
    Ok((cell.label.clone(), calibrate(&split(&long, seeds))?))
}

fn show(kept: &Kept, out: Output) -> Result<End> {
    if out.json {
        out.json(kept)?;
        return Ok(End::Done);
    }
    let number = |value: f64, kind: EffectKind| match kind {
        EffectKind::Ratio => format!("{:.3} %", value * 100.0),
        EffectKind::Difference => format!("{value:.3}"),
    };
    let mut rows = Vec::new();
    for (cell, calibration) in &kept.cells {
        for metric in &calibration.metrics {
            rows.push(Noise {
                cell: cell.clone(),
                metric: metric.name.clone(),
                pairs: metric.pairs,
                identical: metric.identical,
                deviation: number(metric.robust_deviation, metric.kind),
                bias: metric.bias.as_ref().map_or_else(
                    || "-".to_owned(),
                    |bias| number(bias.estimate - bias.kind.null(), bias.kind),
                ),
                false_claims: metric.false_claims,
            });
        }
    }
    out.text(&format!("{}\n{}\n", list(&rows, &out.look), kept.line()))?;
    Ok(End::Done)
}
