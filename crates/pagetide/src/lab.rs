//! The laboratory a command works in: its store, its cache and its arena, opened when first needed.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use pagetide_arena::{Arena, Options};
use pagetide_kernel::{Cache, cache_root};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::ArenaKind;
use pagetide_store::Store;

use crate::arenas;
use crate::interrupt::Interrupt;

/// Which store to use.
#[derive(Args, Clone, Debug, Default)]
pub struct StoreArgs {
    /// Folder where records live [default: $PAGETIDE_STORE, else ~/.local/share/pagetide]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Places")]
    pub store: Option<PathBuf>,
    /// Folder of kernels and snapshots [default: $PAGETIDE_CACHE, else ~/.cache/pagetide]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Places")]
    pub cache: Option<PathBuf>,
}

/// How trials run; none of it changes a result.
#[derive(Args, Clone, Debug)]
pub struct ArenaArgs {
    /// Trials side by side [default: as many as cores and free memory allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Running")]
    pub jobs: Option<u16>,
    /// Most that snapshots may take on disk
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "8G",
        help_heading = "Running"
    )]
    pub cache_limit: Bytes,
    /// End a trial that does not move for this long
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        help_heading = "Running"
    )]
    pub timeout: Nanos,
    /// Most that the trace of an observed trial may take
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "960M",
        help_heading = "Running"
    )]
    pub trace_limit: Bytes,
    /// Ask the package archive for newer kernels
    #[arg(long, help_heading = "Running")]
    pub refresh: bool,
}

impl StoreArgs {
    /// Opens the store.
    pub fn store(&self) -> Result<Store> {
        let folder = match &self.store {
            Some(folder) => folder.clone(),
            None => Store::default_folder()?,
        };
        Ok(Store::open(&folder)?)
    }

    /// The folder of kernels and snapshots.
    pub fn cache_folder(&self) -> Result<PathBuf> {
        let folder = match &self.cache {
            Some(folder) => folder.clone(),
            None => cache_root()?,
        };
        std::path::absolute(&folder).with_context(|| format!("finding {}", folder.display()))
    }

    /// Opens the kernels' cache.
    pub fn kernels(&self) -> Result<Cache> {
        Ok(Cache::open(self.cache_folder()?)?)
    }

    /// Opens the arena of this kind; `say` is told of long steps, `interrupt` ends them.
    pub fn arena(
        &self,
        kind: ArenaKind,
        args: &ArenaArgs,
        interrupt: &Interrupt,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Box<dyn Arena>> {
        let options = Options {
            cache: self.cache_folder()?,
            cache_limit: args.cache_limit,
            trace_limit: args.trace_limit,
            hang_wall: Duration::from_nanos(args.timeout.0),
            jobs: args.jobs.map(usize::from),
            refresh: args.refresh,
            stop: interrupt.flag(),
        };
        arenas::open(kind, options, Box::new(say))
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
