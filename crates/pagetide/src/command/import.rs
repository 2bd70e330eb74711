//! `pagetide import`: imports results of other tools into the store.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueHint;
use pagetide_quantity::slip;
use pagetide_report::import::format::{FORMATS, Format, table};
use pagetide_report::import::{Claims, Source, name_of};
use pagetide_store::{is_campaign_name, shell};

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;
use crate::session::typed;

/// Import results of other tools into the store, to compare them by the same rules
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "pagetide import [OPTIONS] [FORMAT] [VARIANT=]PATH...",
    after_long_help = long_help()
)]
pub struct Args {
    /// Files or folders, after the format if it cannot be detected; VARIANT= names the variant whose results a path
    /// contains
    #[arg(required = true, value_name = "[VARIANT=]PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Name of the campaign that is created [default: derived from the first path]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Baseline: the variant that all others are compared with [default: the earliest, or the first named if no times
    /// are known]
    #[arg(long, value_name = "VARIANT")]
    baseline: Option<String>,
    /// The variants took turns, even if no times in the results say so
    #[arg(long)]
    interleaved: bool,
    /// Column of a CSV file whose equal values make pairs of trials [default: seed]
    #[arg(long, value_name = "COLUMN")]
    pair: Option<String>,
}

/// Returns the help text below the options: examples, formats, and what pairs trials.
fn long_help() -> String {
    format!(
        "\
Examples:
  pagetide import hyperfine.json
  pagetide import before=fio-6.1.json after=fio-6.12.json
  pagetide import stress-ng runs-6.1 runs-6.12 --interleaved
  pagetide import mmtests ~/mmtests/work/log --baseline vanilla
  pagetide import csv results.csv --pair host

Formats:
{}
A path is a variant. Its name is VARIANT=, or what the file calls it, or that of the file or folder. A folder holds the files of
one variant, a run each. A single file of hyperfine is different: its commands are the variants.

Separate runs are no pairs, unless the variants took turns: the times in the results say so, or --interleaved does where there
are none. A CSV file names its columns in the first line: at least scenario, variant, metric and value. Its trials of equal seed
are paired, or those with the same value in the column of --pair. Its column `started` (seconds since 1970, or a date) tells
whether the variants took turns.",
        table()
    )
}

/// Splits an argument `VARIANT=PATH` into variant and path. If the whole argument is an existing path, it has no
/// variant.
fn source(typed: &Path) -> Source {
    let bytes = typed.as_os_str().as_bytes();
    let split = bytes.iter().position(|byte| *byte == b'=');
    match split.filter(|at| *at > 0 && !typed.exists()) {
        Some(at) => Source {
            variant: Some(String::from_utf8_lossy(&bytes[..at]).into_owned()),
            path: PathBuf::from(OsStr::from_bytes(&bytes[at + 1..])),
        },
        None => Source {
            variant: None,
            path: typed.to_owned(),
        },
    }
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let first = args.paths.first().and_then(|path| path.to_str());
    let named = first.and_then(Format::named);
    let paths = match named {
        Some(format) if args.paths.len() == 1 => {
            return Err(Usage::error(format!(
                "`{}` is a format: name the file or folder after it",
                format.tool.name
            )));
        }
        Some(_) => &args.paths[1..],
        None => &args.paths[..],
    };
    let sources: Vec<Source> = paths.iter().map(|path| source(path)).collect();
    let Some(Source { path, .. }) = sources.first() else {
        return Err(Usage::error("name a file or folder to import"));
    };
    // A first word that is not a path may be a misspelled format.
    if let Some(word) = first.filter(|_| named.is_none() && sources.len() > 1 && !path.exists())
        && let Some(near) = slip(word, FORMATS.iter().map(|format| format.tool.name))
    {
        return Err(Usage::error(format!(
            "`{word}` is neither a path nor a format: did you mean {near}?"
        )));
    }
    let format = named.map_or_else(|| Format::of(path), Ok)?;
    if args.pair.is_some() && format.tool.name != "csv" {
        return Err(Usage::error(format!(
            "--pair names a column of CSV, and these are results of {}: leave it out",
            format.tool.name
        )));
    }
    let batch = format.import(&sources, args.pair.as_deref())?;
    let command = shell(&typed());
    let claims = Claims {
        baseline: args.baseline.as_deref(),
        interleaved: args.interleaved,
        command: &command,
    };
    let name = match &args.name {
        Some(name) if is_campaign_name(name) => name.clone(),
        Some(name) => {
            return Err(Usage::error(format!(
                "`{name}` cannot name a campaign: use letters, digits, hyphens and underscores"
            )));
        }
        None => name_of(path),
    };
    let summary = batch.add(&mut places.store()?, &name, claims)?;
    out.show_quoting(&summary, || format!("{summary}\n"))?;
    Ok(End::Done)
}
