//! `pagetide repeat`: the same trial once more, and whether its record is identical.

use anyhow::Result;
use pagetide_campaign::repeat;

use crate::exit::End;
use crate::interrupt::Interrupt;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::Output;
use crate::progress::Progress;

/// Run the trial of a record again and say whether the record is identical, or where it first differs
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide repeat 3f2a
  pagetide repeat 3f2a --times 20 --json

Exits with 0 where every repetition is identical, with 3 where one is not.")]
pub struct Args {
    /// Identity of the record, or its first digits
    record: String,
    /// Number of repetitions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    times: u32,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// Repeats.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let row = store.find(&args.record)?;
    let original = store.load(&row.id)?;
    let record = original.record();
    let interrupt = Interrupt::listen()?;
    let progress = Progress::new(interrupt.clone());
    let say = progress.clone();
    let kind = record.subject.arena.kind;
    let arena = places.arena(kind, &args.arena, &interrupt, move |text| say.say(text))?;
    let repetitions = repeat(&store, arena.as_ref(), record, args.times, &progress)?;
    progress.finish();
    if out.json {
        out.json(&repetitions)?;
    } else {
        out.quoting(&format!("{repetitions}\n"))?;
    }
    Ok(if repetitions.identical == repetitions.times {
        End::Done
    } else {
        End::Open
    })
}
