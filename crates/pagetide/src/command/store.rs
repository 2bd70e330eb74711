//! `pagetide store`: makes the index anew, reads every record to see whether it is whole, and takes out what is not wanted.

use anyhow::Result;
use clap::Subcommand;
use pagetide_quantity::nearest;
use pagetide_store::{Store, StoreError};

use crate::exit::{End, Usage};
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
    /// Make the index anew from the records
    Rebuild,
    /// Read every record, compare its checksums and digest, and the index with it
    Verify,
    /// Remove campaigns, with the records that no other campaign has, or single records
    Remove {
        /// Names of campaigns (every run of them goes), or the first digits of records
        #[arg(value_name = "CAMPAIGN|RECORD", required = true)]
        names: Vec<String>,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

/// Does it.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut store = places.store()?;
    let (found, did) = match &args.what {
        What::Rebuild => (store.rebuild()?, "indexed"),
        What::Verify => (store.verify()?, "whole"),
        What::Remove { names, dry_run } => return remove(&mut store, names, *dry_run, out),
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

fn remove(store: &mut Store, names: &[String], dry_run: bool, out: Output) -> Result<End> {
    let removal = match store.removal(names) {
        Err(StoreError::Unknown { prefix }) => {
            let campaigns = store.campaigns()?;
            let near = nearest(&prefix, campaigns.iter().map(String::as_str));
            let meant = near.map_or_else(
                || {
                    "`pagetide list campaigns` and `pagetide list records` show what there is"
                        .to_owned()
                },
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Usage::error(format!(
                "neither a campaign nor a record is called `{prefix}`: {meant}"
            )));
        }
        other => other?,
    };
    if !dry_run {
        store.remove(&removal)?;
    }
    if out.json {
        out.json(&removal)?;
        return Ok(End::Done);
    }
    let campaigns = match removal.campaigns.as_slice() {
        [] => String::new(),
        [one] => format!("campaign {one}, "),
        many => format!("campaigns {}, ", many.join(", ")),
    };
    let word = if dry_run { "would remove" } else { "removed" };
    let mut text = format!(
        "{word} {campaigns}{} records ({})\n",
        removal.records.len(),
        removal.size
    );
    if removal.shared > 0 {
        put!(
            text,
            "{} records stay: other campaigns have them too\n",
            removal.shared
        );
    }
    out.quoting(&text)?;
    Ok(End::Done)
}
