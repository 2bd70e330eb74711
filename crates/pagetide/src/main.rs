//! The command line: argument parsing and one file per subcommand; no logic of its own.
//!
//! What a user can type is defined in [`cli`], each command in its file under `command/`; help, man page and
//! completions come from those definitions. How a command ends, and with which exit code, is decided in [`exit`] alone.

#![deny(clippy::print_stdout, clippy::print_stderr)] // They panic where nobody reads: see `output`.

/// Adds formatted text to a `String`, which cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)*);
    }};
}

mod campaign_args;
mod cli;
mod command;
mod completion;
mod exit;
mod judged;
mod lab;
mod output;
mod program_args;
mod progress;
mod session;

use std::process::ExitCode;

use pagetide_quantity::command::carry;

fn main() -> ExitCode {
    pagetide_lab::file_size_is_an_error();
    clap_complete::CompleteEnv::with_factory(cli::definition).complete();
    exit::of(|| {
        let cli = cli::parse()?;
        carry(cli.carried());
        command::run(cli)
    })
}
