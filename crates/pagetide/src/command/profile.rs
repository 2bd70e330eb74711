//! `pagetide profile`: shows where every instruction of a trial went and which pages it referenced, or writes the call
//! stacks for other tools.

use std::io::Write;

use anyhow::Result;
use pagetide_campaign::annotate;
use pagetide_compare::covered::{self, VariantCoverage};
use pagetide_compare::profiled::{ProfiledPass, profiled, was_profiled, with_references};
use pagetide_lab::{disassembly, hex};
use pagetide_profile::{
    Annotation, REFERENCES, Recorded, Summary, flame_difference, flame_graph, folded,
    folded_difference, perf_script, pprof, speedscope,
};
use pagetide_quantity::command::in_backticks;
use pagetide_report::heat;
use pagetide_report::terminal::{annotation, coverage, profile, references};
use pagetide_report::why::account;
use pagetide_store::{Store, short};

use crate::exit::{End, Usage};
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::{Output, say};
use crate::session::Session;

/// Show where every instruction of a trial went: by task, group, function and call stack; exact, not sampled
///
/// The trial must have a profiled pass (`run --profile`, or `profile = 1` in a campaign file). With two records, the
/// difference of the trials' times is split into lines that add up to it.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide run swapbench --set lru_gen/enabled=0 --vs lru_gen/enabled=7 --profile
  pagetide profile 3f2a
  pagetide profile 3f2a 81c0
  pagetide profile --coverage
  pagetide profile 3f2a --references
  pagetide profile 3f2a --references --windows 200 --svg > pages.svg
  pagetide profile 3f2a --annotate shrink_folio_list
  pagetide profile 3f2a --as speedscope > a.speedscope.json
  pagetide profile 3f2a --as flame > a.svg
  pagetide profile 3f2a 81c0 --as flame > difference.svg")]
pub struct Args {
    /// ID of a record of the trial, or its first digits; with --coverage, a record or a campaign [default there: the
    /// campaign run last]
    #[arg(required_unless_present = "coverage")]
    a: Option<String>,
    /// ID of a record of a second trial, to compare with the first
    b: Option<String>,
    /// Write the call stacks in the format of another tool
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<ProfileFormat>,
    /// Show how often the lines that the kernel's patch changes were executed
    #[arg(long, conflicts_with_all = ["format", "b", "top"])]
    coverage: bool,
    /// Run the trial again and show each instruction of this function with the number of its executions. For a function
    /// of a module or of a program's file: MODULE:FUNCTION
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["format", "b", "top", "coverage", "references"])]
    annotate: Option<String>,
    #[command(flatten)]
    arena: ArenaArgs,
    /// Show the recorded references to pages: kinds, tasks, addresses, the working set over time, and how well the
    /// kernel chose what to evict and to read ahead
    #[arg(long, conflicts_with_all = ["format", "b", "top", "coverage"])]
    references: bool,
    /// With --references: number of parts of the trial's time
    #[arg(long, value_name = "N", default_value_t = 16, requires = "references", value_parser = clap::value_parser!(u32).range(1..=1000))]
    windows: u32,
    /// With --references: write a map of the used pages over time as SVG
    #[arg(long, requires = "references")]
    svg: bool,
    /// Number of functions to list
    #[arg(
        long,
        value_name = "N",
        default_value_t = 30,
        conflicts_with = "format"
    )]
    top: usize,
}

/// Output format for call stacks.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ProfileFormat {
    /// One line for each stack with its count, or with the counts of both trials; for inferno and FlameGraph
    Folded,
    /// JSON for www.speedscope.app
    Speedscope,
    /// A flame graph as SVG, to search and zoom in a browser; for two trials, a differential flame graph
    Flame,
    /// A protocol buffer for pprof
    Pprof,
    /// Text as `perf script` prints it: for Firefox's profiler and others
    PerfScript,
}

/// Returns the profiled pass of a record's trial. `name` is the record's ID or its first digits. Fails if the trial was
/// not profiled.
fn pass(store: &Store, name: &str) -> Result<ProfiledPass> {
    let row = store.find(name)?;
    if let Some(found) = profiled(store, &row)? {
        return Ok(found);
    }
    Err(Usage::error(if was_profiled(store, &row)? {
        format!(
            "the scenario of record {} did not end, so its profiled pass has no counts: {} says what happened",
            row.id,
            in_backticks(&format!("show {}", short(&row.id)))
        )
    } else {
        format!(
            "the trial of record {} has no profile: run the same campaign with --profile, as {}",
            row.id,
            in_backticks("run SCENARIO --profile")
        )
    }))
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let name = args.a.as_deref();
    let Some(name) = name.filter(|_| !args.coverage) else {
        return show_coverage(&store, name, out);
    };
    if let Some(function) = &args.annotate {
        return show_annotation(&store, name, function, args, places, out);
    }
    if args.references {
        return show_references(&store, name, args, out);
    }
    let a = pass(&store, name)?;
    let b = args
        .b
        .as_deref()
        .map(|name| pass(&store, name))
        .transpose()?;
    let title = |pass: &ProfiledPass| format!("record {} seed {}", pass.record, pass.seed);
    let one_only = |format: &str| {
        Err(Usage::error(format!(
            "{format} has no form for two profiles: name one record, or use --as folded"
        )))
    };
    match (args.format, &b) {
        (Some(ProfileFormat::Folded), None) => out.text(&folded(&a.profile))?,
        (Some(ProfileFormat::Folded), Some(b)) => {
            out.text(&folded_difference(&a.profile, &b.profile))?;
        }
        (Some(ProfileFormat::Flame), None) => {
            picture(&flame_graph(&a.profile, title(&a))?)?;
        }
        (Some(ProfileFormat::Flame), Some(b)) => {
            let both = format!("{} against {}", title(b), title(&a));
            picture(&flame_difference(&a.profile, &b.profile, both)?)?;
        }
        (Some(ProfileFormat::Speedscope), None) => out.text(&speedscope(&a.profile, &title(&a)))?,
        (Some(ProfileFormat::Pprof), None) => picture(&pprof(&a.profile))?,
        (Some(ProfileFormat::Pprof), Some(_)) => return one_only("pprof"),
        (Some(ProfileFormat::PerfScript), None) => out.text(&perf_script(&a.profile))?,
        (Some(ProfileFormat::Speedscope), Some(_)) => return one_only("speedscope"),
        (Some(ProfileFormat::PerfScript), Some(_)) => return one_only("perf script"),
        (None, None) if out.json => out.json(&a.profile)?,
        (None, None) => {
            out.text(&profile::profile(
                &a.profile,
                &a.proof.sentence(),
                args.top,
                &out.text_style,
            ))?;
        }
        (None, Some(b)) => {
            let found = pagetide_profile::account(&a.profile, &b.profile);
            if out.json {
                out.json(&found)?;
            } else {
                let names = [short(&a.record), short(&b.record)];
                out.text(&account::account(&found, names, &out.text_style))?;
                for pass in [&a, b] {
                    let sentence = pass.proof.sentence();
                    out.text(&format!("{}: {sentence}\n", short(&pass.record)))?;
                }
            }
        }
    }
    Ok(End::Done)
}

/// Runs the trial of a record again, and shows the instructions of a function with their numbers of executions.
fn show_annotation(
    store: &Store,
    name: &str,
    function: &str,
    args: &Args,
    places: &StoreArgs,
    out: Output,
) -> Result<End> {
    let row = store.find(name)?;
    let record = store.load(&row.id)?.into_record();
    let session = Session::begin(places, &args.arena)?;
    let arena = session.arena(record.subject.arena.kind)?;
    let (arena, progress) = (arena.as_ref(), &session.progress);
    let pass = annotate(arena, &record, function, progress)?;
    progress.finish();
    let Some(bytes) = pass.annotation else {
        return Err(Usage::error(format!(
            "the scenario of record {} did not end, so nothing was counted",
            row.id
        )));
    };
    let found: Annotation = serde_json::from_slice(&bytes)?;
    if !pass.is_same {
        say("the results differ from those of the record: the counts are of another trajectory");
    }
    if out.json {
        out.json(&found)?;
        return Ok(End::Done);
    }
    let texts = disassembly(&found).unwrap_or_else(|why| {
        say(&why);
        found.lines.iter().map(|line| hex(&line.bytes)).collect()
    });
    out.text(&annotation::annotation(&found, &texts, &out.text_style))?;
    Ok(End::Done)
}

/// Shows the recorded references to pages of a record's trial, as tables or as a picture.
fn show_references(store: &Store, name: &str, args: &Args, out: Output) -> Result<End> {
    let row = store.find(name)?;
    let found = with_references(store, &row)?.ok_or_else(|| {
        Usage::error(format!(
            "the trial of record {} recorded no references: run the same campaign with --references, as {}",
            row.id,
            in_backticks("run SCENARIO --references")
        ))
    })?;
    let id = found.record().id();
    let summary = Summary::of(Recorded::new(found.blob(REFERENCES)?)?, args.windows)?;
    if args.svg {
        out.text(&heat::map(&summary, short(&id)))?;
        return Ok(End::Done);
    }
    out.show(&summary, || {
        references::references(&summary, short(&id), &out.text_style)
    })?;
    Ok(End::Done)
}

/// Shows how often the lines changed by a patch were executed in a record or a campaign; without a name, in the
/// campaign run last.
fn show_coverage(store: &Store, name: Option<&str>, out: Output) -> Result<End> {
    let latest = match name {
        None => store.campaigns()?.into_iter().next(),
        Some(name) => Some(name.to_owned()),
    };
    let latest = latest.ok_or_else(|| Usage::error("the store has no campaign yet".to_owned()))?;
    let note = match store.campaign(&latest)? {
        Some(_) if name.is_none() => store.campaign(&latest)?,
        _ => store.latest_of(&latest)?,
    };
    let all = if let Some(note) = note {
        covered::coverage(store, &note)?
    } else {
        let row = store.find(&latest)?;
        let found = covered::of_record(store, &row)?;
        let one = |coverage| VariantCoverage {
            variant: row.subject().variant.name,
            trials: 1,
            coverage,
        };
        found.map(one).into_iter().collect()
    };
    if all.is_empty() {
        return Err(Usage::error(format!(
            "{latest} has no coverage, which profiled trials have on kernels that pagetide built with a patch: {} makes them",
            in_backticks("run SCENARIO --patch FILE --profile")
        )));
    }
    if out.json {
        out.json(&all)?;
    } else {
        out.text(&coverage::tables(&all, &out.text_style))?;
    }
    Ok(End::Done)
}

/// Writes bytes, such as those of a picture, to standard output.
fn picture(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}
