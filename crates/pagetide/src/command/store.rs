//! `pagetide store`: rebuilds the index, verifies records, and removes records and campaigns.

use anyhow::Result;
use clap::Subcommand;
use pagetide_store::Store;

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::Output;

/// Rebuild the store's index, verify its records, or remove campaigns and records
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide store verify
  pagetide store rebuild --store /srv/pagetide
  pagetide store remove quick --dry-run
  pagetide store remove quick 4cd6dea4")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Rebuild the index from the records
    Rebuild,
    /// Read every record, and check its checksums, its digest and its entry in the index
    Verify,
    /// Remove campaigns, with the records that belong to no other campaign, or single records
    Remove {
        /// Names of campaigns, with all their runs, or prefixes of records' identities
        #[arg(value_name = "CAMPAIGN|RECORD", required = true)]
        names: Vec<String>,
        /// Only show what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut store = places.store()?;
    let (found, did) = match &args.what {
        What::Rebuild => (store.rebuild()?, "indexed"),
        What::Verify => (store.verify()?, "whole"),
        What::Remove { names, dry_run } => return remove(&mut store, names, *dry_run, out),
    };
    out.show_quoting(&found, || found.text(did))?;
    Ok(if found.damaged.is_empty() {
        End::Done
    } else {
        End::Open
    })
}

fn remove(store: &mut Store, names: &[String], dry_run: bool, out: Output) -> Result<End> {
    let removal = store.removal(names)?;
    if !dry_run {
        store.remove(&removal)?;
    }
    out.show_quoting(&removal, || removal.text(!dry_run))?;
    Ok(End::Done)
}
