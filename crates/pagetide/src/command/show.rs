//! `pagetide show`: one record in full.

use std::io::copy;

use anyhow::{Context, Result};
use pagetide_probe::meaning::{ReclaimTable, analyse};
use pagetide_probe::trace::TraceFile;
use pagetide_record::RecordReader;
use pagetide_report::seed::highalloc::reclaim;
use pagetide_report::terminal::show::{presence, show};

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Show a record: what made it, what came out, and what depends on machine and moment
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide show 3f2a
  pagetide show 3f2a --json | jq .results.metrics
  pagetide show 3f2a --series access > access.csv")]
pub struct Args {
    /// Its identity, or the start of it
    record: String,
    /// What reclaim did, row for row, from the trace of an observed trial
    #[arg(long, conflicts_with_all = ["series", "blob"])]
    reclaim: bool,
    /// Write this series as comma-separated values
    #[arg(long, value_name = "NAME", conflicts_with = "blob")]
    series: Option<String>,
    /// Write this blob as it is
    #[arg(long, value_name = "NAME")]
    blob: Option<String>,
}

/// Shows it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let row = store.find(&args.record)?;
    let reader = store.load(&row.id)?;
    if let Some(name) = &args.series {
        has(&reader, "series", name)?;
        let series = reader.series(name)?;
        pagetide_report::csv::series(std::io::stdout().lock(), &series)?;
    } else if let Some(name) = &args.blob {
        has(&reader, "blob", name)?;
        copy(&mut reader.blob(name)?, &mut std::io::stdout().lock())?;
    } else if args.reclaim {
        let table = table(&reader)?;
        if out.json {
            out.json(&table)?;
        } else {
            let head = reader.record().subject.variant.name.clone();
            out.text(&reclaim(&[head], &[Some(&table)]))?;
        }
    } else if out.json {
        out.json(reader.record())?;
    } else {
        out.text(&show(reader.record(), &presence(&reader)?, &out.look))?;
    }
    Ok(End::Done)
}

/// Refuses a section that the record has not.
fn has(reader: &RecordReader, kind: &str, name: &str) -> Result<()> {
    let names: Vec<&str> = reader
        .record()
        .sections
        .iter()
        .filter(|section| section.kind == kind)
        .map(|section| section.name.as_str())
        .collect();
    if names.contains(&name) {
        return Ok(());
    }
    let known = match names.as_slice() {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    };
    Err(Usage::error(format!(
        "the record has no {kind} `{name}`: {known}"
    )))
}

/// Name of the blob in which an observed trial keeps its trace.
const TRACE: &str = "trace";

/// The reclaim table of an observed trial.
fn table(reader: &RecordReader) -> Result<ReclaimTable> {
    let record = reader.record();
    let is_there = record
        .sections
        .iter()
        .any(|section| section.kind == "blob" && section.name == TRACE);
    if !is_there {
        return Err(Usage::error(
            "the record has no trace: run the campaign with --observe, and look at a record whose pass is observed",
        ));
    }
    let trace = TraceFile::read(reader.blob(TRACE)?).context("reading the record's trace")?;
    Ok(analyse(&trace, None, None)?)
}
