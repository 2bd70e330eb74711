//! `pagetide task`: runs one task of a batch, on a node of a cluster.

use std::path::PathBuf;

use anyhow::{Result, bail};
use pagetide_campaign::{BatchFolder, Node, TaskError, maker, work};
use pagetide_lab::stage;
use pagetide_record::ArenaKind;

use crate::exit::End;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::session::Session;

/// Run one task of a job that `run --on slurm` submitted; only such jobs need this command
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder of the batch, in the store
    folder: PathBuf,
    /// Number of the task
    number: u32,
    /// Cache folder from which kernels and programs are copied to this node's cache
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs) -> Result<End> {
    let Some(folder) = BatchFolder::at(&args.folder) else {
        bail!(
            "{} is no batch: a batch is a folder in `batches` of a store",
            args.folder.display()
        );
    };
    let stopped = match work_in(&folder, args, places) {
        Ok(()) => return Ok(End::Done),
        Err(error) => error,
    };
    if matches!(stopped.downcast_ref(), Some(TaskError::Stopped)) {
        return Ok(End::Unable);
    }
    let node = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let node = std::env::var("SLURMD_NODENAME").unwrap_or(node);
    folder.fail(
        args.number,
        &format!("{stopped:#} (on node {})", node.trim()),
    )?;
    Err(stopped)
}

fn work_in(folder: &BatchFolder, args: &Args, places: &StoreArgs) -> Result<()> {
    let session = Session::begin(places, &args.arena)?;
    let arena = session.arena(ArenaKind::Exact)?;
    let cache = places.cache_folder()?;
    let node = Node {
        arena: arena.as_ref(),
        stage: &|trial| stage(&args.from, &cache, trial),
        maker: &maker,
        progress: &session.progress,
    };
    Ok(work(folder, args.number, &node)?)
}
