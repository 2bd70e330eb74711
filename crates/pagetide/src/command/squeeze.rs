//! `pagetide squeeze`: the smallest memory at which a program or scenario is not much slower than with plenty.

use anyhow::Result;
use clap::ValueEnum;
use pagetide_campaign::squeeze::{
    Answer, CUT, Design, MOST_RUNS, Point, Squeeze, SqueezeOutcome, squeeze,
};
use pagetide_campaign::{
    Campaign, Observe, Options, PROGRAM, ScenarioSpec, StateWriter, Until, maker,
};
use pagetide_compare::squeezed::{Knob, Squeezed};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_report::terminal::squeeze as shown;
use pagetide_scenario::Definition;
use pagetide_store::{RunEnd, shell};

use crate::building;
use crate::campaign_args::CampaignArgs;
use crate::command::run::{typed, wanted};
use crate::exit::{End, Usage};
use crate::interrupt::Interrupt;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::Output;
use crate::program_args::ProgramArgs;
use crate::progress::Progress;

/// Seeds where none are asked for.
const SEEDS: u32 = 3;
/// Most seeds: more leave too few of the runs for sizes.
const MOST_SEEDS: u32 = 4;
/// Sizes are multiples of this.
const STEP: u64 = 64 << 10;
/// The gap that is narrow enough.
const RESOLUTION: f64 = 0.02;
/// The smallest size that is tried is plenty divided by this, where none is named.
const RANGE: u64 = 16;
/// Time after which a program is ended where none is named; the scenario's own default.
const TIME_LIMIT: Nanos = Nanos::from_secs(600);

/// How much memory does it need? The smallest at which it is not much slower than with plenty
///
/// --memory is plenty. With a program of your own the limit of its memory group is searched within that machine, with a scenario
/// the memory of the machine. At most 15 runs: plenty with every seed, then a bisection with the first seed, then the two sizes
/// around the answer with all seeds, and one observed run for what is in memory there. What has a record is not run again, so the
/// same command goes on where it was stopped.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide squeeze --memory 128M --file numbers -- sort numbers
  pagetide squeeze --memory 256M --within 10% --dir /usr/lib/python3.11 --file job.py -- /usr/bin/python3 job.py
  pagetide squeeze --memory 64M --by memory --swap none --file numbers -- sort numbers
  pagetide squeeze kv --memory 128M -p size=48M -p snapshot=false --json

A size is enough where the interval of its slowdown (95 %, Student's, of the logarithms, paired by seed) is at most the
share, and too small where it is above it, where the program dies, or where it takes five times as long.")]
pub struct Args {
    /// A scenario, where it is no program of your own
    #[arg(required_unless_present = "command", value_name = "SCENARIO")]
    what: Vec<String>,
    /// How much slower it may be than with plenty
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share, help_heading = "Search")]
    within: f64,
    /// What is searched [default: limit for a program, memory for a scenario]
    #[arg(long, value_name = "WHAT", help_heading = "Search")]
    by: Option<By>,
    /// Smallest size that is tried [default: a sixteenth of plenty]
    #[arg(long, value_name = "SIZE", help_heading = "Search")]
    least: Option<Bytes>,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// The limit of the program's memory group
    Limit,
    /// The memory of the machine
    Memory,
}

/// Reads `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    let (digits, scale) = match text.trim().strip_suffix('%') {
        Some(digits) => (digits.trim(), 0.01),
        None => (text.trim(), 1.0),
    };
    match digits.parse::<f64>() {
        Ok(number) if (0.001..=10.0).contains(&(number * scale)) => Ok(number * scale),
        _ => Err("give a share from 0.1 % to 1000 %, such as 5%".to_owned()),
    }
}

/// Searches.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let interrupt = Interrupt::listen()?;
    let progress = Progress::new(interrupt.clone());
    let tell = |text: &str| progress.say(text);
    let words = &args.campaign;
    let mut campaign = wanted(&args.what, words, &args.program, places, &interrupt, &tell)?;
    if let Until::Enough(seeds) = &mut campaign.sampling.until {
        *seeds = SEEDS;
    }
    if words.request()?.name.is_none() {
        campaign.name = format!("squeeze-{}", campaign.name);
    }
    check(&campaign)?;
    let mut arena_args = args.arena.clone();
    let built = building::build(&mut campaign, places, &mut arena_args, &interrupt, &tell)?;
    if built.failed > 0 {
        return Ok(End::Unable);
    }
    let asked = args.asked(campaign)?;
    let say = progress.clone();
    let arena = places.arena(asked.campaign.arena, &arena_args, &interrupt, move |text| {
        say.say(text);
    })?;
    let mut store = places.store()?;
    let options = Options {
        jobs: args.arena.jobs.map(usize::from),
        fresh: false,
        command: shell(&typed()),
        maker: &maker,
    };
    let state = StateWriter::new(places.store()?, &asked.campaign.name, &progress);
    let of_size = |point: &Point| progress.say(&told(point));
    let outcome = squeeze(
        &asked,
        arena.as_ref(),
        &mut store,
        &options,
        &state,
        &of_size,
    );
    progress.finish();
    state.ended(match &outcome {
        Ok(SqueezeOutcome::Stopped(_)) => RunEnd::Stopped,
        Ok(SqueezeOutcome::Found(_)) => RunEnd::Whole,
        Err(error) => RunEnd::Unable(error.to_string()),
    });
    match outcome? {
        SqueezeOutcome::Stopped(runs) => {
            progress.say(&format!(
                "stopped after {runs} of at most {MOST_RUNS} runs; the same command goes on from here"
            ));
            Ok(End::Unable)
        }
        SqueezeOutcome::Found(squeezed) => show(&squeezed, out),
    }
}

/// Refuses what is not one question.
fn check(campaign: &Campaign) -> Result<()> {
    let cells: usize = campaign
        .scenarios
        .iter()
        .map(ScenarioSpec::cell_count)
        .sum();
    if campaign.variants.len() != 1 || cells != 1 {
        return Err(Usage::error(format!(
            "squeeze answers for one variant and one workload at a time, and here are {} and {cells}: give one kernel, no --vs, \
             and one value of each parameter",
            campaign.variants.len()
        )));
    }
    let is_sequential = matches!(campaign.sampling.until, Until::Sure { .. });
    if is_sequential || campaign.observe != Observe::None {
        return Err(Usage::error(
            "--until-sure and --observe have no place in a search, which decides itself what runs: leave them out",
        ));
    }
    if campaign.sampling.until.cap() > MOST_SEEDS {
        return Err(Usage::error(format!(
            "{} seeds leave too few of {MOST_RUNS} runs for sizes: give --seeds 1 to {MOST_SEEDS}",
            campaign.sampling.until.cap()
        )));
    }
    Ok(())
}

impl Args {
    fn asked(&self, campaign: Campaign) -> Result<Squeeze> {
        let spec = &campaign.scenarios[0];
        let definition = pagetide_scenario::find(&spec.name)?;
        let is_program = spec.name == PROGRAM;
        let knob = match self.by {
            Some(By::Limit) if !is_program => {
                return Err(Usage::error(format!(
                    "--by limit is for a program of your own, and {} runs without a memory group: use --by memory",
                    spec.name
                )));
            }
            Some(By::Limit) => Knob::Limit,
            None if is_program => Knob::Limit,
            Some(By::Memory) | None => Knob::Memory,
        };
        if knob == Knob::Limit && self.program.limit.is_some() {
            return Err(Usage::error(
                "--limit is what is searched: say with --memory how much is plenty, and leave --limit out",
            ));
        }
        let memory = spec.memory.first().copied().unwrap_or_default().bytes().0;
        let plenty = memory / STEP * STEP;
        let least = match self.least {
            Some(least) => least.0,
            None => plenty / RANGE,
        };
        let least = least.next_multiple_of(STEP).max(STEP);
        if least >= plenty {
            return Err(Usage::error(format!(
                "there is nothing between {} and {} to search: lower --least, or raise --memory",
                Bytes(least),
                Bytes(plenty)
            )));
        }
        let primary = definition.metrics.iter().find(|metric| metric.primary);
        let metric = match spec.primary.as_ref().and_then(|names| names.first()) {
            Some(name) => name.clone(),
            None => primary.map_or_else(String::new, |metric| metric.name.to_owned()),
        };
        let given = self.program.time_limit.unwrap_or(TIME_LIMIT);
        Ok(Squeeze {
            knob,
            metric,
            pins: pins(spec, definition),
            time_limit: is_program.then(|| ("time-limit".to_owned(), given)),
            design: Design {
                plenty,
                least,
                step: STEP,
                within: self.within,
                seeds: campaign.sampling.until.cap(),
                // One is observed.
                runs: MOST_RUNS - 1,
                resolution: RESOLUTION,
            },
            campaign,
        })
    }
}

/// Parameters whose text depends on the size of the machine.
fn pins(spec: &ScenarioSpec, definition: &Definition) -> Vec<String> {
    let depends = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
        let mut words = words.into_iter();
        words.any(|word| matches!(word, "memory" | "swap" | "scale"))
    };
    let text = |param: &pagetide_scenario::Param| {
        let given = spec
            .params
            .get(param.name)
            .and_then(|values| values.first());
        given
            .cloned()
            .unwrap_or_else(|| definition.default_of(param, spec.as_written).to_owned())
    };
    let params = definition.params.iter();
    params
        .filter(|param| depends(&text(param)))
        .map(|param| param.name.to_owned())
        .collect()
}

/// What a size gave, in a line.
fn told(point: &Point) -> String {
    let size = Bytes(point.size);
    let seeds = match point.seeds {
        1 => "1 seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    };
    match (&point.died, point.slowdown) {
        (Some(why), _) => format!("{size}: it {why} ({seeds})"),
        (None, Some(slowdown)) => format!("{size}: {:+.1} % ({seeds})", slowdown * 100.0),
        (None, None) => format!("{size}: nothing ({seeds})"),
    }
}

fn show(squeezed: &Squeezed, out: Output) -> Result<End> {
    if out.json {
        out.json(squeezed)?;
    } else {
        out.quoting(&shown::squeeze(squeezed, &out.look))?;
        if squeezed
            .curve
            .iter()
            .any(pagetide_compare::squeezed::Measured::was_cut)
        {
            out.text(&format!(
                "A run is ended after {CUT} times the time with plenty.\n"
            ))?;
        }
        out.quoting(&format!(
            "Records: `pagetide list records --campaign {}`\n",
            squeezed.campaign
        ))?;
    }
    Ok(match squeezed.answer {
        Answer::PlentyDied { .. } | Answer::NothingTried => End::Open,
        _ => End::Done,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_with_and_without_a_percent_sign() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share(" 0.25 "), Ok(0.25));
        for wrong in ["", "%", "five", "-5%", "0", "NaN", "2000%"] {
            assert!(share(wrong).unwrap_err().contains("such as 5%"), "{wrong}");
        }
    }

    #[test]
    fn parameters_that_follow_from_the_memory_are_pinned_and_others_are_not() {
        let definition = pagetide_scenario::find("kv").unwrap();
        let mut spec = ScenarioSpec {
            name: "kv".to_owned(),
            ..ScenarioSpec::default()
        };
        assert_eq!(pins(&spec, definition), ["size"]);
        spec.params
            .insert("size".to_owned(), vec!["48M".to_owned()]);
        assert!(pins(&spec, definition).is_empty());
    }
}
