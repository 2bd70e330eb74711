//! One file per subcommand: its arguments, and its calls of the libraries.

pub mod agree;
pub mod atlas;
pub mod bisect;
pub mod calibrate;
pub mod case;
pub mod compare;
pub mod doctor;
pub mod emulator;
pub mod explain;
pub mod history;
pub mod hunt;
pub mod ideal;
pub mod import;
pub mod kernel;
pub mod list;
pub mod manual;
pub mod matrix;
pub mod model;
pub mod plan;
pub mod power;
pub mod profile;
pub mod references;
pub mod repeat;
pub mod report;
pub mod run;
pub mod serve;
pub mod show;
pub mod squeeze;
pub mod store;
pub mod task;

use anyhow::Result;

use crate::cli::{Cli, Command, definition};
use crate::exit::End;
use crate::output::{Output, say};
use pagetide_quantity::command::in_backticks;

/// Runs the command that the user gave. Returns the result, which determines the exit code.
pub fn run(cli: Cli) -> Result<End> {
    let out = Output::new(cli.json, cli.ascii);
    let places = cli.places;
    match cli.command {
        Command::Run(args) => run::run(&args, &places, out),
        Command::Compare(args) => compare::run(&args, &places, out),
        Command::Agree(args) => agree::run(&args, &places, out),
        Command::Report(args) => report::run(&args, &places, out),
        Command::Serve(args) => serve::run(&args, &places, out),
        Command::Show(args) => show::run(&args, &places, out),
        Command::Profile(args) => profile::run(&args, &places, out),
        Command::Bisect(args) => bisect::run(&args, &places, out),
        Command::Squeeze(args) => squeeze::run(&args, &places, out),
        Command::Matrix(args) => matrix::run(&args, &places, out),
        Command::Hunt(args) => hunt::run(&args, &places, out),
        Command::Repeat(args) => repeat::run(&args, &places, out),
        Command::Plan(args) => plan::run(&args, &places, out),
        Command::List(args) => list::run(args, &places, out),
        Command::Kernel(args) => kernel::run(args, &places, out),
        Command::Emulator(args) => emulator::run(args, &places, out),
        Command::Doctor(_) => doctor::run(&places, out),
        Command::Ideal(args) => ideal::run(&args, &places, out),
        Command::History(args) => history::run(&args, &places, out),
        Command::Calibrate(args) => calibrate::run(&args, &places, out),
        Command::Case(args) => case::run(&args, out),
        Command::Import(args) => import::run(&args, &places, out),
        Command::Store(args) => store::run(&args, &places, out),
        Command::Task(args) => task::run(&args, &places),
        Command::Man(args) => manual::man(&args, definition()),
        Command::Completions(args) => manual::completions(&args),
        Command::Explain(args) => {
            renamed("explain", "compare --why");
            explain::run(&args, &places, out)
        }
        Command::Power(args) => {
            renamed("power", "plan power");
            power::run(&args, &places, out)
        }
        Command::References(args) => {
            renamed("references", "ideal references");
            references::run(&args, out)
        }
        Command::Atlas(args) => {
            renamed("atlas", "ideal atlas");
            atlas::run(&args, &places, out)
        }
        Command::Model(args) => {
            renamed("model", "ideal model");
            model::run(&args, out)
        }
    }
}

/// Tells the user that a command has a new name.
fn renamed(old: &str, new: &str) {
    let (old, new) = (in_backticks(old), in_backticks(new));
    say(&format!(
        "{old} is now {new}: the old name goes with the next version"
    ));
}
