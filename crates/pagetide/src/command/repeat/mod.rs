//! `pagetide repeat`: the same trial once more, and whether its record is identical.

mod difference;

use anyhow::{Context, Result};
use pagetide_arena::{Arena, ArenaError, Trial, VariantSpec};
use pagetide_compare::differences;
use pagetide_record::Record;
use pagetide_store::Store;
use serde::Serialize;

use self::difference::{Difference, first_difference};
use crate::exit::{End, Usage};
use crate::interrupt::Interrupt;
use crate::lab::{ArenaArgs, StoreArgs, maker};
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
struct Repeated {
    record: String,
    digest: String,
    times: u32,
    identical: u32,
    notes: Vec<String>,
    first_difference: Option<Difference>,
}

/// Repeats.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let row = store.find(&args.record)?;
    let path = store.path(&row.id);
    let original = store.load(&row.id)?;
    let before = original.record();
    let progress = Progress::new(Interrupt::listen()?);
    let say = progress.clone();
    let kind = before.subject.arena.kind;
    let arena = places.arena(kind, &args.arena, move |text| say.say(text))?;
    if arena.has_noise() {
        return Err(Usage::error(format!(
            "record {} is of the {kind} arena, where no trial gives the same twice: only trials without noise can be repeated",
            short(&row.id)
        )));
    }
    let arena = arena.as_ref();
    let (trial, subject) = prepared(arena, before)?;
    let mut notes: Vec<String> = differences(&before.subject, &subject)
        .iter()
        .map(ToString::to_string)
        .collect();
    if before.subject.arena.guest != subject.arena.guest {
        notes.push("the record was made by another build of pagetide".to_owned());
    }
    if before.subject.arena.cmdline != subject.arena.cmdline {
        notes.push("the kernel's command line is not the same".to_owned());
    }
    let mut repeated = Repeated {
        record: row.id.clone(),
        digest: before.digest.clone(),
        times: 0,
        identical: 0,
        notes,
        first_difference: None,
    };
    for _ in 0..args.times {
        let found = once(
            &store,
            arena,
            &trial,
            &subject,
            &progress,
            |record, file| {
                if record.digest == before.digest {
                    return Ok(None);
                }
                first_difference(&path, file).map(Some)
            },
        );
        match found {
            Ok(None) => repeated.identical += 1,
            Ok(difference) => {
                repeated.first_difference = repeated.first_difference.or(difference);
            }
            Err(error) => return Err(error),
        }
        repeated.times += 1;
    }
    progress.finish();
    if out.json {
        out.json(&repeated)?;
    } else {
        out.quoting(&told(&repeated))?;
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

/// The trial of a record, and what the arena makes of it. The very kernel is asked for by its digest, for the name it
/// had may stand for a newer one today.
fn prepared(arena: &dyn Arena, record: &Record) -> Result<(Trial, pagetide_record::Subject)> {
    let subject = &record.subject;
    let trial = |kernel: &str| Trial {
        scenario: subject.scenario.clone(),
        as_written: subject.as_written,
        params: subject.params.clone(),
        seed: subject.seed,
        variant: VariantSpec {
            name: subject.variant.name.clone(),
            kernel: kernel.to_owned(),
            boot: subject.variant.boot.clone(),
            settings: subject.variant.settings.clone(),
        },
        memory: subject.memory,
        swap: subject.swap,
        swap_size: Some(subject.swap_size),
        pass: subject.pass,
        unit: 0,
        repetition: 0,
    };
    let wanted = &subject.variant.kernel;
    for name in [&wanted.digest, &wanted.source] {
        let trial = trial(name);
        match arena.prepare(&trial) {
            Ok(found) if found.variant.kernel.digest == wanted.digest => return Ok((trial, found)),
            Err(error) if name == &wanted.source => {
                return Err(error).context(format!(
                    "kernel {} of the record cannot be had again",
                    wanted.release
                ));
            }
            Ok(_) | Err(_) => {}
        }
    }
    anyhow::bail!(
        "{} stands for another kernel today than the {} of the record: add that one with `pagetide kernel add`",
        wanted.source,
        wanted.release
    )
}

/// Runs the trial once and hands its record over; nothing of it stays.
fn once<T>(
    store: &Store,
    arena: &dyn Arena,
    trial: &Trial,
    subject: &pagetide_record::Subject,
    progress: &Progress,
    look: impl FnOnce(&Record, &std::path::Path) -> Result<T>,
) -> Result<T> {
    let mut sink = store.writer()?;
    let finding = arena.run(trial, subject, &mut sink, progress);
    let finding = match finding {
        Err(ArenaError::Stopped) => anyhow::bail!("stopped before the trial's end"),
        other => other?,
    };
    let mut record = Record {
        subject: subject.clone(),
        maker: maker(trial),
        results: finding.results,
        wall: finding.wall,
        ..Record::default()
    };
    let file = sink.finish(&mut record)?;
    let seen = look(&record, &file);
    std::fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    seen
}

fn told(repeated: &Repeated) -> String {
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
    text
}
