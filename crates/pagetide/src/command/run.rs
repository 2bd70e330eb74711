//! `pagetide run`: a campaign file or scenarios, through the arena into the store, to a verdict.

use anyhow::Result;
use pagetide_campaign::{
    CONTROL, Campaign, Options, PATCHED, StateWriter, inert, maker, run as run_campaign, shell,
};
use pagetide_compare::{Column, Comparison, compare_note, compare_two, medians, show_campaign};
use pagetide_report::terminal::layout;
use pagetide_store::Store;
use pagetide_store::{CampaignNote, RunEnd};

use crate::building;
use crate::campaign_args::CampaignArgs;
use crate::exit::End;
use crate::interrupt::Interrupt;
use crate::judged::JudgedArgs;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::{Output, say};
use crate::program_args::ProgramArgs;
use crate::progress::Progress;
use crate::vocabulary::vocabulary;

/// Run a campaign file, or scenarios under variants given here, and judge what came out
///
/// A campaign that was interrupted goes on where it was: what has a record is not run again.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide run campaigns/quick.toml
  pagetide run smooth-sin-random --kernel debian:bookworm --kernel debian:sid --swap ssd
  pagetide run hot-cold --patch my.patch
  pagetide run swapbench --set vm.page-cluster=0 --vs vm.page-cluster=3 --swap ssd:80us
  pagetide run linear --memory 24M -p 'pages=2 * memory' --seeds 2
  pagetide run contswap --as-written --scale 0.02
  pagetide run contswap --swap disk:8ms,40MB/s --set vm.page-cluster=3 --vs vm.page-cluster=0
  pagetide run campaigns/papers/swapbench.toml --as paper
  pagetide run --memory 64M --vs lru_gen/enabled=0 --file numbers -- sort -n numbers

Kernels: debian:SUITE, debian:SUITE/SERIES, deb:PACKAGE[=VERSION][/SUITE], a .deb file, image:FILE[,modules:DIR],
a built tree, a bzImage, or a kernel in the cache by release or digest (`pagetide kernel list`).

Ctrl-C stops the running trials; what is stored stays, and the same command goes on from there.")]
pub struct Args {
    /// A campaign file (ending in .toml) or names of scenarios [default with --patch: five that feel what
    /// reclaim, swap and compaction choose]
    #[arg(
        required_unless_present_any = ["patch", "command"],
        value_name = "CAMPAIGN.toml|SCENARIO"
    )]
    what: Vec<String>,
    /// Run everything again, although there are records
    #[arg(long, help_heading = "Running")]
    fresh: bool,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    arena: ArenaArgs,
    #[command(flatten)]
    judged: JudgedArgs,
}

/// Runs it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let interrupt = Interrupt::listen()?;
    let progress = Progress::new(interrupt.clone());
    let tell = |text: &str| progress.say(text);
    let mut campaign = wanted(&args.what, &args.campaign, &args.program, places, &tell)?;
    let cells: Vec<_> = campaign.cells().collect();
    args.judged
        .check(cells.iter().map(|cell| cell.scenario.as_str()))?;
    let mut arena_args = args.arena.clone();
    let compared = campaign.variants.len() > 1;
    let built = building::build(
        &mut campaign,
        places,
        &mut arena_args,
        &interrupt,
        &|text| {
            progress.say(text);
        },
    )?;
    for same in &built.same {
        progress.say(same);
    }
    if compared && is_settled(&campaign, &built) {
        return Ok(if built.failed > 0 {
            End::Unable
        } else {
            End::Done
        });
    }
    let say = progress.clone();
    let arena = places.arena(campaign.arena, &arena_args, &interrupt, move |text| {
        say.say(text);
    })?;
    let mut store = places.store()?;
    if let Some(text) = campaign.power(&vocabulary()) {
        progress.say(&text);
    }
    for text in inert(&campaign, arena.as_ref())? {
        progress.say(&text);
    }
    let options = Options {
        jobs: args.arena.jobs.map(usize::from),
        fresh: args.fresh,
        command: typed(),
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
    let mut is_open = false;
    let end = if note.variants.len() > 1 {
        let comparison = compare_note(&store, &note)?;
        is_open = comparison.open() > 0;
        args.judged
            .show(&store, &comparison, note.id(), typed(), out)?
    } else if args.judged.is_paper() {
        let comparison = show_campaign(&store, Some(&note.id()))?;
        let end = args
            .judged
            .show(&store, &comparison, note.id(), typed(), out)?;
        one_variant(end, &comparison)
    } else {
        show_medians(&store, &note, out)?
    };
    if args.judged.is_table(out) {
        if let Some(text) = beyond_layout(&store, &note)? {
            out.text(&text)?;
        }
        out.text(&afterwards(&store, &note, is_open))?;
    }
    Ok(if built.failed > 0 { End::Unable } else { end })
}

/// Whether building has answered all there was to ask: only the baseline is left, or a control beside it.
fn is_settled(campaign: &Campaign, built: &building::Outcome) -> bool {
    let others = campaign.variants.iter().skip(1);
    (!built.same.is_empty() || built.failed > 0)
        && others.filter(|variant| variant.name != CONTROL).count() == 0
}

/// How a command ends that showed a single variant: nothing was judged, only invalid trials count.
pub fn one_variant(end: End, comparison: &Comparison) -> End {
    let invalid = |column: &Column| column.invalid > 0;
    match comparison.columns.as_slice() {
        [_, _, ..] => end,
        columns if columns.iter().any(invalid) => End::Open,
        _ => End::Done,
    }
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

/// Says of a patch whether it does more than code that merely moves.
fn beyond_layout(store: &Store, note: &CampaignNote) -> Result<Option<String>> {
    let has = |name: &str| note.variants.iter().any(|variant| variant == name);
    if !has(PATCHED) || !has(CONTROL) {
        return Ok(None);
    }
    let side = |name: &str| format!("{}:{name}", note.id());
    let comparison = compare_two(store, &side(CONTROL), &side(PATCHED), true)?;
    Ok(Some(layout::sentences(&comparison)))
}

/// The campaign that the words stand for, which may be those of a program of the user's own.
pub fn wanted(
    what: &[String],
    args: &CampaignArgs,
    program: &ProgramArgs,
    places: &StoreArgs,
    say: &dyn Fn(&str),
) -> Result<Campaign> {
    let (request, vocabulary) = (args.request()?, vocabulary());
    if program.command.is_empty() {
        return Ok(request.campaign(what, &vocabulary)?);
    }
    let (spec, place) = (program.spec()?, program.install(places, say)?);
    Ok(request.of_program(what, &spec, &place, &vocabulary)?)
}

/// The command line as it was typed.
pub fn typed() -> String {
    typed_with(&[])
}

/// The same with more options, which stand before the words of a program.
fn typed_with(options: &[&str]) -> String {
    let mut all = vec!["pagetide".to_owned()];
    all.extend(std::env::args().skip(1));
    let end = all.iter().position(|word| word == "--");
    let at = end.unwrap_or(all.len());
    all.splice(at..at, options.iter().map(ToString::to_string));
    shell(&all)
}

/// A command line of this program.
fn words(words: &[&str]) -> String {
    let mut all = vec!["pagetide".to_owned()];
    all.extend(words.iter().map(ToString::to_string));
    shell(&all)
}

/// Where the records lie, and two things to try next, which fit what came out.
fn afterwards(store: &Store, note: &CampaignNote, is_open: bool) -> String {
    let id = note.id();
    let records = store.folder().join("records");
    let mut text = format!(
        "\nRecords: {} ({} trials, campaign {id})\nNext:\n",
        records.display(),
        note.entries.len()
    );
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
            // Whoever asked for that already has seen as many as may be.
            if is_open && note.looks.is_empty() {
                (
                    typed_with(&["--until-sure"]),
                    "more seeds, until each primary metric is decided",
                )
            } else {
                (
                    words(&["report", &id, "-o", &format!("{id}.html")]),
                    "the same as a page, with its figures",
                )
            },
        ],
        _ => [
            (
                typed_with(&["--set", "lru_gen/enabled=0", "--vs", "lru_gen/enabled=7"]),
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
