//! `pagetide repeat`: runs a trial again and tests whether its record is identical.

use anyhow::Result;
use pagetide_campaign::repeat;

use crate::exit::End;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::Output;
use crate::session::Session;

/// Run the trial of a record again and say whether the record is identical, or where it first differs
///
/// On the running kernel (`--on host`) no two trials are identical: then it says how far apart the repetitions are.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide repeat 3f2a
  pagetide repeat 3f2a --times 20 --json

Exits with 0 if every repetition is identical or the arena has noise, otherwise with 3.")]
pub struct Args {
    /// ID of the record, or its first digits
    record: String,
    /// Number of repetitions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    times: u32,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let row = store.find(&args.record)?;
    let original = store.load(&row.id)?;
    let record = original.record();
    let session = Session::begin(places, &args.arena)?;
    let arena = session.arena(record.subject.arena.kind)?;
    let progress = &session.progress;
    let repetitions = repeat(&store, arena.as_ref(), record, args.times, progress)?;
    progress.finish();
    out.show_quoting(&repetitions, || format!("{repetitions}\n"))?;
    let has_noise = !repetitions.spreads.is_empty();
    Ok(if has_noise || repetitions.identical == repetitions.times {
        End::Done
    } else {
        End::Open
    })
}
