//! `pagetide import`: what others measured, into the store.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use pagetide_record::{Record, Store};
use pagetide_report::import::{csv, mmtests};
use serde::Serialize;

use crate::exit::End;
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
    records: usize,
    variants: Vec<String>,
}

/// Imports.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let records = match &args.what {
        What::Mmtests { folder } => mmtests::import(folder)?,
        What::Csv { file } => csv::import(file)?,
    };
    let mut store = places.store()?;
    let imported = add(&mut store, records)?;
    if out.json {
        out.json(&imported)?;
    } else {
        out.text(&format!(
            "{} records of {} are in the store\nNext:\n  pagetide list records\n  pagetide compare RECORD RECORD\n",
            imported.records,
            imported.variants.join(", ")
        ))?;
    }
    Ok(End::Done)
}

fn add(store: &mut Store, records: Vec<Record>) -> Result<Imported> {
    let mut imported = Imported {
        records: 0,
        variants: Vec::new(),
    };
    for mut record in records {
        let writer = store.writer()?;
        store.add(writer, &mut record)?;
        imported.records += 1;
        let name = record.subject.variant.name;
        if !imported.variants.contains(&name) {
            imported.variants.push(name);
        }
    }
    Ok(imported)
}
