//! `pagetide import`: what others measured, into the store.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use pagetide_report::import::{Claims, csv, mmtests, name_of};
use pagetide_store::{is_campaign_name, shell};

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;
use crate::session::typed;

/// Import results of other tools into the store, to compare them by the same rules
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide import mmtests ~/mmtests/work/log
  pagetide import mmtests ~/mmtests/work/log --baseline vanilla
  pagetide import csv results.csv --pair host

A CSV file names its columns in the first line: at least scenario, variant, metric and value. Trials of equal seed are
paired, or those with the same value in the column of --pair; without either, nothing is paired. A column `started`
(seconds since 1970, or a date) tells whether the variants took turns; without it, say so with --interleaved.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// Name of the campaign the results become [default: that of the file or folder]
    #[arg(long, value_name = "NAME", global = true)]
    name: Option<String>,
    /// Baseline: the variant that the others are compared with [default: the first by time]
    #[arg(long, value_name = "VARIANT", global = true)]
    baseline: Option<String>,
    /// The variants took turns, even if no times in the results say so
    #[arg(long, global = true)]
    interleaved: bool,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Results of mmtests: the folder of its logs
    Mmtests {
        /// The folder
        folder: PathBuf,
    },
    /// A table of comma-separated values
    Csv {
        /// The file
        file: PathBuf,
        /// Column whose equal values make pairs of trials [default: seed]
        #[arg(long, value_name = "COLUMN")]
        pair: Option<String>,
    },
}

/// Imports.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let (batch, path) = match &args.what {
        What::Mmtests { folder } => (mmtests::import(folder)?, folder),
        What::Csv { file, pair } => (csv::import(file, pair.as_deref())?, file),
    };
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
