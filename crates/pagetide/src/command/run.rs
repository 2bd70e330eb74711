//! `pagetide run`: a campaign file or scenarios, through the arena into the store, to a verdict.

use std::path::Path;

use anyhow::Result;
use pagetide_campaign::{
    Campaign, Options, StateWriter, Until, file, inert, maker, run as run_campaign, seeds_for,
    shell,
};
use pagetide_compare::{compare_note, medians};
use pagetide_store::Store;
use pagetide_store::{CampaignNote, RunEnd};

use crate::campaign_of::CampaignArgs;
use crate::exit::{End, Usage};
use crate::interrupt::Interrupt;
use crate::judged::JudgedArgs;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::{Output, say};
use crate::progress::Progress;
use crate::vocabulary::vocabulary;

/// Run a campaign file, or scenarios under variants given here, and judge what came out
///
/// A campaign that was interrupted goes on where it was: what has a record is not run again.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide run campaigns/quick.toml
  pagetide run smooth-sin-random --kernel debian:bookworm --kernel debian:sid --seeds 8
  pagetide run swapbench --set vm.page-cluster=0 --vs vm.page-cluster=3 --swap ssd:80us
  pagetide run linear --memory 24M -p 'pages=2 * memory' --seeds 2
  pagetide run contswap --as-written --scale 0.02

Kernels: debian:SUITE, debian:SUITE/SERIES, deb:PACKAGE[=VERSION][/SUITE], a .deb file, image:FILE[,modules:DIR],
a built tree, a bzImage, or a kernel in the cache by release or digest (`pagetide kernel list`).

Ctrl-C stops the running trials; what is stored stays, and the same command goes on from there.")]
pub struct Args {
    /// A campaign file (ending in .toml) or names of scenarios
    #[arg(required = true, value_name = "CAMPAIGN.toml|SCENARIO")]
    what: Vec<String>,
    /// Run everything again, although there are records
    #[arg(long, help_heading = "Running")]
    fresh: bool,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    arena: ArenaArgs,
    #[command(flatten)]
    judged: JudgedArgs,
}

/// Runs it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let campaign = asked_for(&args.what, &args.campaign)?;
    let interrupt = Interrupt::listen()?;
    let progress = Progress::new(interrupt.clone());
    let say = progress.clone();
    let arena = places.arena(campaign.arena, &args.arena, &interrupt, move |text| {
        say.say(text);
    })?;
    let mut store = places.store()?;
    if let Some(text) = power(&campaign) {
        progress.say(&text);
    }
    for text in inert(&campaign, arena.as_ref())? {
        progress.say(&text);
    }
    let options = Options {
        jobs: args.arena.jobs.map(usize::from),
        fresh: args.fresh,
        maker: &maker,
    };
    let state = StateWriter::new(places.store()?, &campaign.name, &progress);
    let outcome = run_campaign(&campaign, arena.as_ref(), &mut store, &options, &state);
    progress.finish();
    state.ended(match &outcome {
        Ok(outcome) if outcome.stopped => RunEnd::Stopped,
        Ok(_) => RunEnd::Whole,
        Err(error) => RunEnd::Unable(error.to_string()),
    });
    let outcome = outcome?;
    if outcome.stopped {
        progress.say(&format!(
            "stopped: {} of {} trials have their records; the same command goes on from here",
            outcome.tally.done(),
            outcome.tally.total
        ));
        return Ok(End::Unable);
    }
    let note = outcome.note;
    let end = if note.variants.len() > 1 {
        let comparison = compare_note(&store, &note)?;
        args.judged
            .show(&store, &comparison, note.id(), typed(), out)?
    } else {
        show_medians(&store, &note, out)?
    };
    if args.judged.is_table(out) {
        out.text(&afterwards(&store, &note))?;
    }
    Ok(end)
}

/// Shows the primary metrics of a campaign with a single variant, and its invalid trials.
fn show_medians(store: &Store, note: &CampaignNote, out: Output) -> Result<End> {
    let (medians, invalid) = medians(store, note)?;
    for trial in &invalid {
        say(&format!(
            "invalid: {} with seed {}: {}",
            trial.cell, trial.seed, trial.why
        ));
    }
    out.list(&medians, "no trial gave a number")?;
    Ok(if invalid.is_empty() {
        End::Done
    } else {
        End::Open
    })
}

/// The campaign that the words stand for, with as many seeds as it needs where nobody said how many.
pub fn asked_for(what: &[String], args: &CampaignArgs) -> Result<Campaign> {
    let mut campaign = named(what, args)?;
    let primaries = primaries(&campaign);
    campaign.enough(primaries);
    Ok(campaign)
}

/// Primary metrics that are judged together: those of every cell under every variant but the baseline.
fn primaries(campaign: &Campaign) -> usize {
    let of_cell = |cell: pagetide_campaign::Cell| match &cell.primary {
        Some(primary) => primary.len(),
        None => pagetide_scenario::find(&cell.scenario).map_or(0, |definition| {
            definition.metrics.iter().filter(|m| m.primary).count()
        }),
    };
    let of_cells: usize = campaign.cells().map(of_cell).sum();
    of_cells * campaign.variants.len().saturating_sub(1)
}

/// What the number of seeds can decide, said before anything runs; `None` where nothing is compared.
fn power(campaign: &Campaign) -> Option<String> {
    let primaries = primaries(campaign);
    let metrics = match primaries {
        0 => return None,
        1 => "1 primary metric".to_owned(),
        many => format!("{many} primary metrics"),
    };
    let needed = seeds_for(primaries);
    match campaign.sampling.until {
        Until::Blocks(seeds) if seeds < needed => Some(format!(
            "{seeds} seeds for each variant cannot decide {metrics} together, however clear the result: {needed} are needed"
        )),
        Until::Blocks(seeds) | Until::Enough(seeds) => Some(format!(
            "{seeds} seeds for each variant; {needed} are the fewest that can decide {metrics} together"
        )),
        Until::Sure { .. } => None,
    }
}

fn named(what: &[String], args: &CampaignArgs) -> Result<Campaign> {
    let vocabulary = vocabulary();
    let is_file = |word: &String| {
        Path::new(word)
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
    };
    match what {
        [path] if is_file(path) => {
            if let Some(option) = args.of_the_file() {
                return Err(Usage::error(format!(
                    "{option} has no place beside a campaign file: write it into {path}, or name a scenario instead"
                )));
            }
            let mut campaign = file::read(Path::new(path), &vocabulary)?;
            args.adjust(&mut campaign);
            Ok(campaign)
        }
        _ => match what.iter().find(|word| is_file(word)) {
            Some(path) => Err(Usage::error(format!(
                "{path} stands beside other words: run one campaign file at a time"
            ))),
            None => args.campaign(what, &vocabulary),
        },
    }
}

/// The command line as it was typed.
fn typed() -> String {
    let mut all = vec!["pagetide".to_owned()];
    all.extend(std::env::args().skip(1));
    shell(&all)
}

/// A command line of this program.
fn words(words: &[&str]) -> String {
    let mut all = vec!["pagetide".to_owned()];
    all.extend(words.iter().map(ToString::to_string));
    shell(&all)
}

/// Where the records lie, and two things to try next.
fn afterwards(store: &Store, note: &CampaignNote) -> String {
    let id = note.id();
    let records = store.folder().join("records");
    let mut text = format!(
        "\nRecords: {} ({} trials, campaign {id})\nNext:\n",
        records.display(),
        note.entries.len()
    );
    let same = typed();
    let next = match note.variants.as_slice() {
        [first, .., last] => [
            (
                words(&[
                    "compare",
                    &format!("{id}:{first}"),
                    &format!("{id}:{last}"),
                    "--all",
                    "--pictures",
                ]),
                "every metric, and the latencies as pictures",
            ),
            (
                format!("{same} --until-sure"),
                "more seeds, until each primary metric is decided",
            ),
        ],
        _ => [
            (
                format!("{same} --set lru_gen/enabled=0 --vs lru_gen/enabled=7"),
                "the same with MGLRU off against on",
            ),
            (
                words(&["list", "records", "--campaign", &id]),
                "the records, for `pagetide show`",
            ),
        ],
    };
    for (command, why) in next {
        put!(text, "  {command}\n      {why}\n");
    }
    text
}
