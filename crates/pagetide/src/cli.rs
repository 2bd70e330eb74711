//! Definition of the command line, from which help, man page and completions are generated.

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use pagetide_report::{TextStyle, words};

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
    /// Use only ASCII characters
    #[arg(long, global = true, help_heading = "Output")]
    pub ascii: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// Headings of the help text, each with the names of its commands; the six most important commands come first.
const GROUPS: [(&str, &str); 5] = [
    ("Most used", "run squeeze compare plan report doctor"),
    (
        "More experiments",
        "matrix bisect hunt calibrate case agree",
    ),
    (
        "Results",
        "show profile list history repeat serve import store",
    ),
    ("References and policies", "ideal"),
    ("The tool itself", "kernel emulator man completions"),
];

/// The commands, in the order of [`GROUPS`].
#[derive(Subcommand, Debug)]
pub enum Command {
    Run(Box<command::run::Args>),
    Squeeze(Box<command::squeeze::Args>),
    Compare(command::compare::Args),
    Plan(Box<command::plan::Args>),
    Report(command::report::Args),
    Doctor(command::doctor::Args),
    Matrix(Box<command::matrix::Args>),
    Bisect(Box<command::bisect::Args>),
    Hunt(Box<command::hunt::Args>),
    Calibrate(Box<command::calibrate::Args>),
    Case(command::case::Args),
    Agree(command::agree::Args),
    Show(command::show::Args),
    Profile(command::profile::Args),
    List(command::list::Args),
    History(command::history::Args),
    Repeat(command::repeat::Args),
    Serve(command::serve::Args),
    Import(command::import::Args),
    Store(command::store::Args),
    Ideal(Box<command::ideal::Args>),
    Kernel(command::kernel::Args),
    Emulator(command::emulator::Args),
    Man(command::manual::ManArgs),
    Completions(command::manual::CompletionArgs),
    #[command(hide = true)]
    Task(Box<command::task::Args>),
    // Former names of commands. They still work, and print the new name.
    #[command(hide = true)]
    Explain(command::explain::Args),
    #[command(hide = true)]
    Power(command::power::Args),
    #[command(hide = true)]
    References(command::references::Args),
    #[command(hide = true)]
    Atlas(command::atlas::Args),
    #[command(hide = true)]
    Model(command::model::Args),
}

impl Cli {
    /// Returns the global options that every command suggested to the user must repeat: the folders of store and cache,
    /// and `--ascii`.
    pub fn carried(&self) -> Vec<String> {
        let places = [
            ("--store", &self.places.store),
            ("--cache", &self.places.cache),
        ];
        let places = places.into_iter().filter_map(|(option, folder)| {
            let folder = folder.as_ref()?.display().to_string();
            Some([option.to_owned(), folder])
        });
        let mut all: Vec<String> = places.flatten().collect();
        all.extend(self.ascii.then(|| "--ascii".to_owned()));
        all
    }
}

/// Parses the command line of this process. Fails if it is wrong, and for `--help` and `--version`.
pub fn parse() -> Result<Cli> {
    Ok(Cli::from_arg_matches(&with_headings().try_get_matches()?)?)
}

/// Returns the definition of the command line, for man page and completions.
pub fn definition() -> clap::Command {
    with_names(Cli::command())
}

/// Returns the definition with a help text that lists the commands under [`GROUPS`], because clap itself supports
/// headings only for options.
fn with_headings() -> clap::Command {
    let (command, text_style) = (Cli::command(), TextStyle::of_stdout(false));
    let about = |name: &str| {
        let about = command.find_subcommand(name).map(clap::Command::get_about);
        about.flatten().map(ToString::to_string).unwrap_or_default()
    };
    let list = words::under_headings(&GROUPS, about, text_style.width);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
#[path = "../tests/definition.rs"]
mod tests;
