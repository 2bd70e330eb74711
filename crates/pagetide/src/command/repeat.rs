//! `pagetide repeat`: the same trial once more, and whether its record is identical.

use anyhow::Result;
use pagetide_campaign::{maker, prepare_again, run_again};
use pagetide_compare::{Change, Divergence, differences, first_divergence, largest_change};
use serde::Serialize;

use crate::exit::{End, Usage};
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
    /// Its identity, or the start of it
    record: String,
    /// How often
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    times: u32,
    #[command(flatten)]
    arena: ArenaArgs,
}

#[derive(Serialize)]
struct Repetitions {
    record: String,
    digest: String,
    times: u32,
    identical: u32,
    notes: Vec<String>,
    first_difference: Option<Divergence>,
    /// The metric that changed most, where several builds of the guest or a fault made the results differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    largest: Option<Change>,
}

/// Repeats.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let row = store.find(&args.record)?;
    let original = store.load(&row.id)?;
    let before = original.record();
    let interrupt = Interrupt::listen()?;
    let progress = Progress::new(interrupt.clone());
    let say = progress.clone();
    let kind = before.subject.arena.kind;
    let arena = places.arena(kind, &args.arena, &interrupt, move |text| say.say(text))?;
    if arena.has_noise() {
        return Err(Usage::error(format!(
            "record {} is of the {kind} arena, where no trial gives the same twice: only trials without noise can be repeated",
            short(&row.id)
        )));
    }
    let arena = arena.as_ref();
    let prepared = prepare_again(arena, &before.subject)?;
    let subject = prepared.subject();
    let mut notes: Vec<String> = differences(&before.subject, subject)
        .iter()
        .map(ToString::to_string)
        .collect();
    if before.subject.arena.guest != subject.arena.guest {
        let [old, new] =
            [&before.subject.arena.guest, &subject.arena.guest].map(|guest| short(guest));
        notes.push(format!(
            "the guest programs differ ({old} then, {new} now): another guest is another trajectory, and results move with it"
        ));
    }
    if before.subject.arena.cmdline != subject.arena.cmdline {
        notes.push("the kernel's command line is not the same".to_owned());
    }
    let mut repeated = Repetitions {
        record: row.id.clone(),
        digest: before.digest.clone(),
        times: 0,
        identical: 0,
        notes,
        first_difference: None,
        largest: None,
    };
    for _ in 0..args.times {
        let again = run_again(&store, arena, &prepared, maker(prepared.trial()), &progress)?;
        if again.digest == before.digest {
            repeated.identical += 1;
        } else if repeated.first_difference.is_none() {
            repeated.first_difference = Some(first_divergence(before, &again));
            repeated.largest = largest_change(before, &again);
        }
        repeated.times += 1;
    }
    progress.finish();
    if out.json {
        out.json(&repeated)?;
    } else {
        out.quoting(&text(&repeated))?;
    }
    Ok(if repeated.identical == repeated.times {
        End::Done
    } else {
        End::Open
    })
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

fn text(repeated: &Repetitions) -> String {
    let mut text = format!(
        "{} of {} repetitions are identical to {} (digest {})\n",
        repeated.identical,
        repeated.times,
        short(&repeated.record),
        short(&repeated.digest)
    );
    for note in &repeated.notes {
        put!(text, "note: {note}\n");
    }
    if let Some(difference) = &repeated.first_difference {
        put!(text, "first difference: {difference}\n");
    }
    if let Some(largest) = &repeated.largest {
        put!(text, "largest change of a metric that decides: {largest}\n");
    }
    text
}
