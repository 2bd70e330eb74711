//! `pagetide store`: makes the index anew, and reads every record to see whether it is whole.

use anyhow::Result;
use clap::Subcommand;
use pagetide_store::Store;
use pagetide_store::{Damaged, Filter};
use serde::Serialize;

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::Output;

/// Rebuild the store's index from its records, or verify the records
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide store verify
  pagetide store rebuild --store /srv/pagetide")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Make the index anew from the records
    Rebuild,
    /// Read every record and compare its checksums and digest
    Verify,
}

/// What was found.
#[derive(Serialize)]
struct Found {
    records: u64,
    damaged: Vec<Damaged>,
}

/// Does it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut store = places.store()?;
    let (found, did) = match args.what {
        What::Rebuild => {
            let rebuilt = store.rebuild()?;
            let found = Found {
                records: rebuilt.records,
                damaged: rebuilt.damaged,
            };
            (found, "indexed")
        }
        What::Verify => (verify(&store)?, "whole"),
    };
    if out.json {
        out.json(&found)?;
    } else {
        let mut text = format!("{} records are {did}\n", found.records);
        for damaged in &found.damaged {
            put!(
                text,
                "damaged: {} ({}); move it away\n",
                damaged.path.display(),
                damaged.why
            );
        }
        out.quoting(&text)?;
    }
    Ok(if found.damaged.is_empty() {
        End::Done
    } else {
        End::Open
    })
}

fn verify(store: &Store) -> Result<Found> {
    let mut found = Found {
        records: 0,
        damaged: store.damaged()?,
    };
    for row in store.select(&Filter::default())? {
        match store.load(&row.id).map(|reader| reader.verify()) {
            Ok(Ok(())) => found.records += 1,
            Ok(Err(why)) => found.damaged.push(Damaged {
                path: store.path(&row.id),
                why: why.to_string(),
            }),
            Err(why) => found.damaged.push(Damaged {
                path: store.path(&row.id),
                why: why.to_string(),
            }),
        }
    }
    Ok(found)
}
