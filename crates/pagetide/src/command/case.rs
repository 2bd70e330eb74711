//! `pagetide case`: writes a described workload as a C file.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use pagetide_lab::case_in_c;
use pagetide_quantity::Bytes;

use crate::exit::End;
use crate::output::Output;

/// Write a described workload as one C file, which does the same on any Linux machine
///
/// The file needs no library but libc. The comment at its top has the commands that set up the machine.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide case campaigns/zoo/fork-storm.toml -o case.c
  cc -O1 -Wall -Wextra -o case case.c
  pagetide run --memory 24M --metric 'time=time ([0-9]+):lower' -- ./case")]
pub struct Args {
    /// A campaign file with a table [workload], or a file with a workload only
    #[arg(value_name = "CASE.toml")]
    file: PathBuf,
    /// Memory that sizes in percent refer to [default: the file's]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, out: Output) -> Result<End> {
    let text = case_in_c(&args.file, args.memory)?;
    match &args.output {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => out.text(&text)?,
    }
    Ok(End::Done)
}
