//! What a user can type: the one definition that help, man page and completions come from.

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::command;
use crate::completion::with_names;
use crate::exit::CODES;
use crate::lab::StoreArgs;

/// Is kernel or setting B better than A under memory pressure, by how much, how sure, and why?
#[derive(Parser, Debug)]
#[command(
    name = "pagetide",
    bin_name = "pagetide",
    version,
    arg_required_else_help = true,
    propagate_version = true,
    after_help = CODES,
    after_long_help = format!("\
Examples:
  pagetide run campaigns/quick.toml
  pagetide run smooth-sin-random --swap ssd --set lru_gen/enabled=0 --vs lru_gen/enabled=7
  pagetide run swapbench --kernel debian:bookworm --kernel debian:sid --swap ssd:80us
  pagetide compare mglru-off mglru-on --as mail
  pagetide report quick -o quick.html
  pagetide doctor

{CODES}
")
)]
pub struct Cli {
    #[command(flatten)]
    pub places: StoreArgs,
    /// Write tables as JSON
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// Draw with ASCII characters alone
    #[arg(long, global = true, help_heading = "Output")]
    pub ascii: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, in the order help shows them.
#[derive(Subcommand, Debug)]
pub enum Command {
    Run(Box<command::run::Args>),
    Squeeze(Box<command::squeeze::Args>),
    Bisect(Box<command::bisect::Args>),
    Matrix(Box<command::matrix::Args>),
    Compare(command::compare::Args),
    Explain(command::explain::Args),
    Report(command::report::Args),
    Serve(command::serve::Args),
    Show(command::show::Args),
    Repeat(command::repeat::Args),
    Plan(Box<command::plan::Args>),
    List(command::list::Args),
    Kernel(command::kernel::Args),
    Doctor(command::doctor::Args),
    References(command::references::Args),
    Ideal(Box<command::ideal::Args>),
    Atlas(command::atlas::Args),
    Model(command::model::Args),
    History(command::history::Args),
    Power(command::power::Args),
    Calibrate(Box<command::calibrate::Args>),
    Import(command::import::Args),
    Store(command::store::Args),
    Words(command::manual::WordsArgs),
    Man(command::manual::ManArgs),
    Completions(command::manual::CompletionArgs),
}

/// Reads the command line.
pub fn parse() -> Result<Cli> {
    Ok(Cli::try_parse()?)
}

/// The definition itself, for man page and completions.
pub fn definition() -> clap::Command {
    with_names(Cli::command())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_contradicts_itself_nowhere() {
        definition().debug_assert();
    }
}
