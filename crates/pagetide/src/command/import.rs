//! `pagetide import`: what others measured, into the store.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;
use pagetide_report::import::{Batch, Said, csv, mmtests, note};
use pagetide_store::{Imported as Pairing, Store, is_campaign_name};
use serde::Serialize;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Bring results of others into the store, where they are compared by the same rules
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
    /// Variant that the others are set against [default: the first by time]
    #[arg(long, value_name = "VARIANT", global = true)]
    baseline: Option<String>,
    /// The variants took turns, although no times in the results say so
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

#[derive(Serialize)]
struct ImportSummary {
    campaign: String,
    records: usize,
    variants: Vec<String>,
    pairing: Option<Pairing>,
}

impl ImportSummary {
    /// What is the baseline, and what pairs the trials.
    fn meaning(&self) -> String {
        let (Some(pairing), Some(baseline)) = (&self.pairing, self.variants.first()) else {
            return String::new();
        };
        let pairs = match &pairing.paired_by {
            Some(what) => format!("trials are paired by {what}"),
            None => "nothing pairs the trials (--pair COLUMN)".to_owned(),
        };
        format!("Baseline is {baseline}, {}; {pairs}.", pairing.baseline)
    }
}

/// Imports.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let (batch, path) = match &args.what {
        What::Mmtests { folder } => (mmtests::import(folder)?, folder),
        What::Csv { file, pair } => (csv::import(file, pair.as_deref())?, file),
    };
    let said = Said {
        baseline: args.baseline.as_deref(),
        interleaved: args.interleaved,
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
    let mut store = places.store()?;
    let imported = add(&mut store, &name, batch, said)?;
    if out.json {
        out.json(&imported)?;
    } else {
        out.quoting(&format!(
            "{} records of {} are in the store\n{}\nNext:\n  pagetide compare {}\n  pagetide list records --campaign {}\n",
            imported.records,
            imported.variants.join(", "),
            imported.meaning(),
            imported.campaign,
            imported.campaign
        ))?;
    }
    Ok(End::Done)
}

/// A campaign's name after a file or folder.
fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let clean: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(80)
        .collect();
    let clean = clean.trim_matches('-');
    if is_campaign_name(clean) {
        clean.to_owned()
    } else {
        "imported".to_owned()
    }
}

fn add(store: &mut Store, name: &str, mut batch: Batch, said: Said<'_>) -> Result<ImportSummary> {
    let last = store.latest_of(name)?;
    let generation = last.map_or(1, |note| note.generation.max(1) + 1);
    let note = note(name, generation, &mut batch, said)?;
    let imported = ImportSummary {
        campaign: note.id(),
        records: batch.records.len(),
        variants: note.variants.clone(),
        pairing: note.imported.clone(),
    };
    store.add_all(&mut batch.records)?;
    store.note(&note)?;
    Ok(imported)
}
