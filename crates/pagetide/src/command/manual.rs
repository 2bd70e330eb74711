//! `pagetide man` and `completions`: print texts generated from the definition of the command line.

use std::fs;
use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap_complete::{Shell, env::Shells};
use clap_mangen::Man;
use pagetide_campaign::reference;

use crate::exit::End;

/// Print a man page, or write all man pages into a folder: each command, campaign files, scenarios
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide man | man -l -
  pagetide man campaign | man -l -
  pagetide man scenarios | man -l -
  pagetide man --into /usr/local/share/man")]
pub struct ManArgs {
    /// Folder of man pages: they are written to its `man1`, `man5` and `man7`
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// The page to print
    #[arg(value_enum, default_value = "pagetide")]
    page: Page,
}

/// A page of the manual that can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Page {
    /// The program and its commands
    Pagetide,
    /// Campaign files: every key with its meaning
    Campaign,
    /// Every scenario with its parameters and metrics
    Scenarios,
}

/// Print completions for a shell
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Example:
  pagetide completions bash > /etc/bash_completion.d/pagetide")]
pub struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// Prints a man page, or writes all man pages into a folder. `definition` is the definition of the command line.
pub fn man(args: &ManArgs, definition: clap::Command) -> Result<End> {
    let Some(folder) = &args.into else {
        let page = match args.page {
            Page::Scenarios => pagetide_scenario::guide::man().into_bytes(),
            Page::Campaign => reference::man().into_bytes(),
            Page::Pagetide => {
                let mut page = Vec::new();
                Man::new(definition).render(&mut page)?;
                page
            }
        };
        io::Write::write_all(&mut io::stdout().lock(), &page)?;
        return Ok(End::Done);
    };
    let write = || -> io::Result<()> {
        let [commands, files, other] = ["man1", "man5", "man7"].map(|section| folder.join(section));
        for folder in [&commands, &files, &other] {
            fs::create_dir_all(folder)?;
        }
        fs::write(files.join("pagetide-campaign.5"), reference::man())?;
        clap_mangen::generate_to(definition, commands)?;
        let scenarios = pagetide_scenario::guide::man();
        fs::write(other.join("pagetide-scenarios.7"), scenarios)
    };
    write().with_context(|| format!("writing man pages into {}", folder.display()))?;
    Ok(End::Done)
}

/// Prints the completions for a shell.
pub fn completions(args: &CompletionArgs) -> Result<End> {
    let (shells, mut out) = (Shells::builtins(), io::stdout().lock());
    if let Some(shell) = shells.completer(&args.shell.to_string()) {
        shell.write_registration("COMPLETE", "pagetide", "pagetide", "pagetide", &mut out)?;
    }
    Ok(End::Done)
}
