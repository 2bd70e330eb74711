//! `pagetide store`: makes the index anew, and reads every record to see whether it is whole.

use anyhow::Result;
use clap::Subcommand;

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
    /// Read every record, compare its checksums and digest, and the index with it
    Verify,
}

/// Does it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut store = places.store()?;
    let (found, did) = match args.what {
        What::Rebuild => (store.rebuild()?, "indexed"),
        What::Verify => (store.verify()?, "whole"),
    };
    if out.json {
        out.json(&found)?;
    } else {
        let mut text = format!("{} records are {did}\n", found.records);
        for damaged in &found.damaged {
            // A record is whole where only the index disagrees with it, and must not be moved away.
            let remedy = if damaged.index { "" } else { "; move it away" };
            put!(
                text,
                "damaged: {} ({}){remedy}\n",
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
