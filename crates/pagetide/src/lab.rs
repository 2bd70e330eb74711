//! The store, the cache and the options of the arena, as used by commands.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use pagetide_arena::Options;
use pagetide_kernel::{Cache, named_root};
use pagetide_lab::Slurm;
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::ArenaKind;
use pagetide_store::Store;

/// Options for the locations of the store and the cache.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Places")]
pub struct StoreArgs {
    /// Folder of the records [default: $PAGETIDE_STORE, else ~/.local/share/pagetide]
    #[arg(long, value_name = "DIR", global = true)]
    pub store: Option<PathBuf>,
    /// Folder of kernels and snapshots [default: $PAGETIDE_CACHE, else ~/.cache/pagetide]
    #[arg(long, value_name = "DIR", global = true)]
    pub cache: Option<PathBuf>,
}

/// Options for running trials; they do not influence results.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Running")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub struct ArenaArgs {
    /// Trials to run at the same time [default: as many as cores and free memory allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Maximum disk space for snapshots, built kernels and programs' file systems
    #[arg(long, value_name = "SIZE", default_value = "8G")]
    pub cache_limit: Bytes,
    /// End a trial that makes no progress for this long
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub timeout: Nanos,
    /// Maximum size of the trace of an observed trial
    #[arg(long, value_name = "SIZE", default_value = "960M")]
    pub trace_limit: Bytes,
    /// Where trials run: in the arena of the campaign, in the arena `exact`, `vm` (KVM) or `host` (the running kernel),
    /// or on a cluster as slurm[:PARTITION]. Slurm's own options come from its environment variables, such as
    /// SBATCH_ACCOUNT
    #[arg(long, value_name = "PLACE", default_value = "here")]
    pub on: RunOn,
    /// With --on host: allow settings that act on the whole machine while a trial runs, such as vm.page-cluster. They
    /// are restored after each trial
    #[arg(long)]
    pub change_this_machine: bool,
    /// With --on vm: run guests in plain emulation, also where KVM works. Times then mean nothing, and every table says
    /// so
    #[arg(long)]
    pub emulated: bool,
    /// With --on slurm: end when the job is submitted. The same command without --detach waits for the job and shows
    /// results
    #[arg(long)]
    pub detach: bool,
    /// With --on slurm: cache folder on each node, for copies of kernels and programs, and for snapshots
    #[arg(long, value_name = "DIR", default_value = "/var/tmp/pagetide")]
    pub node_cache: PathBuf,
    /// Ask the package archive for newer kernels
    #[arg(long)]
    pub refresh: bool,
}

/// Where trials run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOn {
    /// In this process, in the arena of the campaign.
    Here,
    /// In this process, in an arena of this kind.
    Arena(ArenaKind),
    /// On a Slurm cluster, in this partition; `None` for the default partition.
    Slurm(Option<String>),
}

impl FromStr for RunOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "here" => Ok(Self::Here),
            None if text == "exact" => Ok(Self::Arena(ArenaKind::Exact)),
            None if text == "host" => Ok(Self::Arena(ArenaKind::Host)),
            None if text == "vm" => Ok(Self::Arena(ArenaKind::Vm)),
            None if text == "slurm" => Ok(Self::Slurm(None)),
            Some(("slurm", partition)) if !partition.is_empty() => {
                Ok(Self::Slurm(Some(partition.to_owned())))
            }
            _ => Err("give `here`, `exact`, `vm`, `host`, `slurm` or `slurm:PARTITION`".to_owned()),
        }
    }
}

impl StoreArgs {
    /// Opens the store of records.
    pub fn store(&self) -> Result<Store> {
        Ok(Store::open(&self.store_folder()?)?)
    }

    /// Returns the path of the store's folder.
    pub fn store_folder(&self) -> Result<PathBuf> {
        match &self.store {
            Some(folder) => Ok(folder.clone()),
            None => Ok(Store::default_folder()?),
        }
    }

    /// Returns the absolute path of the cache's folder.
    pub fn cache_folder(&self) -> Result<PathBuf> {
        Ok(named_root(self.cache.as_deref())?)
    }

    /// Opens the cache of kernels.
    pub fn kernels(&self) -> Result<Cache> {
        Ok(Cache::open(self.cache_folder()?)?)
    }
}

impl ArenaArgs {
    /// Returns the cluster on which trials run; `None` if they run in this process.
    pub fn cluster(&self, cache: &Path) -> Option<Slurm> {
        match &self.on {
            RunOn::Here | RunOn::Arena(_) => None,
            RunOn::Slurm(partition) => Some(Slurm {
                partition: partition.clone(),
                cache: cache.to_owned(),
                node_cache: self.node_cache.clone(),
            }),
        }
    }

    /// Returns the kind of arena that replaces the campaign's; `None` if the user named none.
    pub fn arena(&self) -> Option<ArenaKind> {
        match self.on {
            RunOn::Arena(kind) => Some(kind),
            RunOn::Here | RunOn::Slurm(_) => None,
        }
    }

    /// Returns options for opening arenas with this cache. Setting `stop` to true ends long operations early.
    pub fn options(&self, cache: PathBuf, stop: Arc<AtomicBool>) -> Options {
        Options {
            cache,
            cache_limit: self.cache_limit,
            trace_limit: self.trace_limit,
            hang_wall: Duration::from_nanos(self.timeout.0),
            jobs: self.jobs.map(usize::from),
            refresh: self.refresh,
            may_change_machine: self.change_this_machine,
            emulated: self.emulated,
            stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        arena: ArenaArgs,
    }

    #[test]
    fn the_command_line_and_the_arena_leave_the_same_where_nothing_is_chosen() {
        let words = Words::parse_from(["pagetide"]).arena;
        let options = Options::new("/cache");
        assert_eq!(Duration::from_nanos(words.timeout.0), options.hang_wall);
        assert_eq!(words.cache_limit, options.cache_limit);
        assert_eq!(words.trace_limit, options.trace_limit);
    }
}
