//! `pagetide import`: what others measured, into the store.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;
use pagetide_record::Record;
use pagetide_report::import::{csv, mmtests, note};
use pagetide_store::Store;
use pagetide_store::is_campaign_name;
use serde::Serialize;

use crate::exit::{End, Usage};
use crate::lab::StoreArgs;
use crate::output::Output;

/// Bring results of others into the store, where they are compared by the same rules
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide import mmtests ~/mmtests/work/log
  pagetide import csv results.csv

A CSV file names its columns in the first line: at least scenario, variant, metric and value.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// Name of the campaign the results become [default: that of the file or folder]
    #[arg(long, value_name = "NAME", global = true)]
    name: Option<String>,
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
    },
}

#[derive(Serialize)]
struct Imported {
    campaign: String,
    records: usize,
    variants: Vec<String>,
}

/// Imports.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let (records, path) = match &args.what {
        What::Mmtests { folder } => (mmtests::import(folder)?, folder),
        What::Csv { file } => (csv::import(file)?, file),
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
    let imported = add(&mut store, &name, records)?;
    if out.json {
        out.json(&imported)?;
    } else {
        out.quoting(&format!(
            "{} records of {} are in the store\nNext:\n  pagetide compare {}\n  pagetide list records --campaign {}\n",
            imported.records,
            imported.variants.join(", "),
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

fn add(store: &mut Store, name: &str, mut records: Vec<Record>) -> Result<Imported> {
    let last = store.latest_of(name)?;
    let generation = last.map_or(1, |note| note.generation.max(1) + 1);
    let note = note(name, generation, &mut records);
    let imported = Imported {
        campaign: note.id(),
        records: records.len(),
        variants: note.variants.clone(),
    };
    for record in &mut records {
        let writer = store.writer()?;
        store.add(writer, record)?;
    }
    store.note(&note)?;
    Ok(imported)
}
