//! `pagetide ideal model`: repeats historical comparisons, which current kernels cannot repeat, in a model.

use anyhow::Result;
use pagetide_oracle::rmap::{ABOUT, Parameters, Test, tests};
use pagetide_report::terminal::ideal::rmap;
use serde::Serialize;

use crate::exit::End;
use crate::output::Output;

/// Repeat a historical comparison in a model; rmap is the comparison of 2002 between 2.4.19 and rmap14a
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Example:
  pagetide ideal model rmap")]
pub struct Args {
    /// The comparison
    #[arg(value_enum)]
    which: ModelName,
    /// Number of references of each test
    #[arg(long, value_name = "N", default_value_t = 2_000_000)]
    refs: u64,
    /// Memory in page frames [default: those of a machine of about 100 MB]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..))]
    frames: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ModelName {
    /// The virtual scan of 2.4.19 against the reverse mapping of rmap14a, under VM Regress
    Rmap,
}

/// JSON output of a model.
#[derive(Serialize)]
struct Model {
    parameters: Parameters,
    tests: Vec<Test>,
    about: &'static str,
}

/// Runs the model and prints its result: the tests, and as JSON also the parameters.
pub fn run(args: &Args, out: Output) -> Result<End> {
    let ModelName::Rmap = args.which;
    let mut parameters = Parameters::default();
    parameters.frames = args.frames.unwrap_or(parameters.frames);
    let tests = tests(&parameters, args.refs)?;
    if out.json {
        out.json(&Model {
            parameters,
            tests,
            about: ABOUT,
        })?;
        return Ok(End::Done);
    }
    out.text(&rmap(&tests, &out.text_style))?;
    Ok(End::Done)
}
