//! `pagetide emulator`: lists the emulators that run trials, or fetches one.

use anyhow::Result;
use clap::Subcommand;
use pagetide_kernel::{Step, Stop};
use pagetide_lab::Interrupt;
use pagetide_lab::emulators::{EmulatorUse, emulators};
use pagetide_report::{draw::Align, terminal::Row};
use serde::Serialize;

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::{Output, say};

/// Debian suite whose emulator is fetched by default: Debian 13.
const SUITE: &str = "trixie";

/// List the emulators that run trials, or fetch one
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Trials with one CPU run in the installed emulator, or in the one that PAGETIDE_QEMU names. Trials with \
several CPUs need QEMU 8.1 or later. If the installed one is older, they run in one that was fetched.

Examples:
  pagetide emulator add
  pagetide emulator list
")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Fetch Debian's emulator with its libraries into the cache; nothing is installed
    Add {
        /// Suite of Debian that the emulator comes from
        #[arg(value_name = "SUITE", default_value = SUITE)]
        suite: String,
    },
    /// List the emulators and what they are used for
    List,
}

/// Runs the command and returns how it ended.
pub fn run(args: Args, places: &StoreArgs, out: Output) -> Result<End> {
    if let What::Add { suite } = args.what {
        let stop = Stop::by(Interrupt::listen()?.flag());
        let cache = places.kernels()?.stopping_by(stop);
        let suite = suite.strip_prefix("debian:").unwrap_or(&suite);
        cache.add_emulator(suite, &mut |step: &Step| say(&step.to_string()))?;
    }
    let found = emulators(places.kernels()?.root());
    let rows: Vec<EmulatorRow> = found.into_iter().map(EmulatorRow::from).collect();
    out.list(&rows, "no emulator: apt-get install qemu-system-x86")?;
    Ok(End::Done)
}

#[derive(Serialize)]
struct EmulatorRow {
    emulator: String,
    used_for: String,
    program: String,
}

impl From<EmulatorUse> for EmulatorRow {
    fn from(found: EmulatorUse) -> Self {
        Self {
            emulator: found.version,
            used_for: found.used_for,
            program: found.program,
        }
    }
}

impl Row for EmulatorRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("emulator", Align::Left),
        ("used for", Align::Left),
        ("program", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.emulator.clone(),
            self.used_for.clone(),
            self.program.clone(),
        ]
    }
}
