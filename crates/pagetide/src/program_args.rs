//! Options for running the user's own program.

use anyhow::Result;
use clap::Args;
use pagetide_campaign::{BesideLimits, CommandLine, ProgramFiles, ProgramSpec};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_scenario::Measure;

use crate::exit::Usage;

/// Options for running the user's own program.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Your own program")]
pub struct ProgramArgs {
    /// Your own program, unmodified, instead of scenarios; a script brings its interpreter; `{seed}` in it is the
    /// trial's seed
    #[arg(last = true, value_name = "COMMAND", help_heading = None)]
    pub command: Vec<String>,
    /// Server to start first, quoted as for a shell; COMMAND is then its load, on loopback, and the result is that of
    /// the load
    #[arg(long, value_name = "CMD", requires = "command", requires = "ready")]
    pub server: Option<CommandLine>,
    /// How to see that the server is ready: 'port N', 'line REGEX' or 'file PATH'
    #[arg(long, value_name = "SIGN", requires = "server")]
    pub ready: Option<String>,
    /// Content of its file system, including libraries: a folder, a tar archive (plain, gzip or zstd), a saved image as
    /// oci:FILE, or Debian packages with their dependencies as deb:PACKAGE[,PACKAGE…][/SUITE] (they are not installed,
    /// and their scripts do not run). From this machine, only what --file and --dir name is added
    #[arg(long, value_name = "ROOT", requires = "command")]
    pub root: Option<String>,
    /// File to add to its file system, with the libraries that the file needs. A relative path is put below /work, an
    /// absolute one at the same path as here, or either at INSIDE
    #[arg(long, value_name = "PATH[:INSIDE]", requires = "command")]
    pub file: Vec<String>,
    /// Folder to add to its file system, with everything in it; paths are treated as for --file
    #[arg(long, value_name = "PATH[:INSIDE]", requires = "command")]
    pub dir: Vec<String>,
    /// Variable of its environment, which otherwise contains only PATH, HOME, USER, LANG and TZ
    #[arg(long, value_name = "NAME=VALUE", requires = "command")]
    pub env: Vec<String>,
    /// Working directory in its file system [default: /work, where relative paths go]
    #[arg(long, value_name = "INSIDE", requires = "command")]
    pub folder: Option<String>,
    /// File on this machine to use as standard input [default: empty]
    #[arg(long, value_name = "PATH", requires = "command")]
    pub input: Option<String>,
    /// Free space in its file system for what it writes [default: as much as its files take, at least 32M]
    #[arg(long, value_name = "SIZE", requires = "command")]
    pub space: Option<Bytes>,
    /// Expected exit status [default: 0]
    #[arg(long, value_name = "N", requires = "command")]
    pub expect_exit: Option<u8>,
    /// End the program after this guest time [default: 600s]
    #[arg(long, value_name = "TIME", requires = "command")]
    pub time_limit: Option<Nanos>,
    /// Memory limit of the program or of any other workload, within a larger machine (memory.max of a memory cgroup).
    /// Sizes of a scenario that depend on memory then depend on the limit
    #[arg(long, value_name = "SIZE")]
    pub limit: Option<Bytes>,
    /// Memory above which the program is throttled and reclaimed (memory.high)
    #[arg(long, value_name = "SIZE", requires = "command")]
    pub high: Option<Bytes>,
    /// Swap limit of the program (memory.swap.max)
    #[arg(long, value_name = "SIZE", requires = "command")]
    pub swap_max: Option<Bytes>,
    /// Memory of the program that is reclaimed only if nothing else is left (memory.low)
    #[arg(long, value_name = "SIZE", alias = "group-low", requires = "command")]
    pub low: Option<Bytes>,
    /// Memory of the program that is never reclaimed (memory.min)
    #[arg(long, value_name = "SIZE", alias = "group-min", requires = "command")]
    pub min: Option<Bytes>,
    /// Second program that runs beside COMMAND in a memory cgroup of its own, quoted as for a shell; the trial ends
    /// when both have ended, and the time of each is judged
    #[arg(
        long,
        value_name = "CMD",
        requires = "command",
        conflicts_with = "server"
    )]
    pub beside: Option<CommandLine>,
    /// Memory limit of the program beside it (memory.max)
    #[arg(long, value_name = "SIZE", requires = "beside")]
    pub beside_limit: Option<Bytes>,
    /// Memory above which the program beside it is throttled and reclaimed (memory.high)
    #[arg(long, value_name = "SIZE", requires = "beside")]
    pub beside_high: Option<Bytes>,
    /// Memory of the program beside it that is reclaimed only if nothing else is left (memory.low)
    #[arg(long, value_name = "SIZE", requires = "beside")]
    pub beside_low: Option<Bytes>,
    /// Memory of the program beside it that is never reclaimed (memory.min)
    #[arg(long, value_name = "SIZE", requires = "beside")]
    pub beside_min: Option<Bytes>,
    /// Swap limit of the program beside it (memory.swap.max)
    #[arg(long, value_name = "SIZE", requires = "beside")]
    pub beside_swap_max: Option<Bytes>,
    /// Number to read from its output, such as 'ops=([0-9.]+) per second:higher'; it becomes the primary metric instead
    /// of the elapsed time
    #[arg(long, value_name = "NAME=REGEX:higher|lower", requires = "command")]
    pub metric: Vec<String>,
}

impl ProgramArgs {
    /// Returns the specification of how to run the program. Fails if an option such as `--metric` cannot be parsed.
    pub fn spec(&self) -> Result<ProgramSpec> {
        for text in &self.metric {
            Measure::read(text).map_err(Usage::error)?;
        }
        Ok(ProgramSpec {
            env: self.env.clone(),
            ready: self.ready.clone(),
            expect_exit: self.expect_exit,
            time_limit: self.time_limit,
            limit: self.limit,
            high: self.high,
            swap_max: self.swap_max,
            low: self.low,
            min: self.min,
            beside_limits: BesideLimits {
                limit: self.beside_limit,
                high: self.beside_high,
                low: self.beside_low,
                min: self.beside_min,
                swap_max: self.beside_swap_max,
            },
            metrics: self.metric.clone(),
        })
    }

    /// Returns all texts in which `{WORD}` is replaced: the commands of the program, the server and the second program,
    /// and the environment.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let others = [&mut self.server, &mut self.beside].into_iter().flatten();
        let others = others.flat_map(|command| &mut command.0);
        self.command.iter_mut().chain(others).chain(&mut self.env)
    }

    /// Returns the command and the files that the program needs.
    pub fn files(&self) -> ProgramFiles {
        ProgramFiles {
            command: self.command.clone(),
            server: self.server.clone().map_or_else(Vec::new, |words| words.0),
            beside: self.beside.clone().map_or_else(Vec::new, |words| words.0),
            root: self.root.clone(),
            files: self.file.clone(),
            dirs: self.dir.clone(),
            input: self.input.clone(),
            folder: self.folder.clone(),
            space: self.space,
        }
    }
}
