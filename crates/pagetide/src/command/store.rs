//! `pagetide store`: rebuilds the index, verifies records, merges stores, and removes records and campaigns.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use pagetide_compare::first_divergence;
use pagetide_record::RecordReader;
use pagetide_store::Store;

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::{Output, say};

/// Rebuild the store's index, verify its records, merge other stores into it, or remove campaigns and records
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide store verify
  pagetide store rebuild --store /srv/pagetide
  pagetide store merge shard-1 shard-2
  pagetide store remove quick --dry-run
  pagetide store remove quick 4cd6dea4")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// Maximum number of conflicts of which the first difference is shown.
const SHOWN_CONFLICTS: usize = 5;

#[derive(Subcommand, Debug)]
enum What {
    /// Rebuild the index from the records
    Rebuild,
    /// Read every record, and check its checksums, its digest and its entry in the index
    Verify,
    /// Copy the records and campaigns of other stores into this one; refused if a trial has two different results
    Merge {
        /// Folders of the other stores, which are not changed
        #[arg(value_name = "DIR", required = true)]
        folders: Vec<PathBuf>,
        /// Only show what would be merged
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove campaigns, with the records that belong to no other campaign, or single records
    Remove {
        /// Names of campaigns, with all their runs, or prefixes of records' IDs
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
        What::Merge { folders, dry_run } => return merge(&mut store, folders, *dry_run, out),
        What::Remove { names, dry_run } => return remove(&mut store, names, *dry_run, out),
    };
    out.show_quoting(&found, || found.text(did))?;
    Ok(if found.damaged.is_empty() {
        End::Done
    } else {
        End::Open
    })
}

fn merge(store: &mut Store, folders: &[PathBuf], dry_run: bool, out: Output) -> Result<End> {
    let merge = store.merge(folders, dry_run)?;
    out.show_quoting(&merge, || merge.text(!dry_run))?;
    for conflict in merge.conflicts.iter().take(SHOWN_CONFLICTS) {
        let here = RecordReader::open(&conflict.here)?;
        let there = RecordReader::open(&conflict.there)?;
        say(&format!(
            "{} and {} are of one trial; first difference: {}",
            conflict.here.display(),
            conflict.there.display(),
            first_divergence(here.record(), there.record())
        ));
    }
    Ok(if merge.is_whole() {
        End::Done
    } else if merge.conflicts.is_empty() {
        End::Open
    } else {
        End::Unable
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
