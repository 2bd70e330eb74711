//! The command line: argument parsing and one file per subcommand, without any other logic.
//!
//! The command line is defined in [`cli`], each command in its file under `command/`. Help, man page and completions
//! are generated from these definitions. The exit code is determined in [`exit`].

#![deny(clippy::print_stdout, clippy::print_stderr)] // They panic if the output is closed: see `output`.

/// Appends formatted text to a `String`; this cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)*);
    }};
}

mod accept_args;
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
    // The host arena starts this program again as guardian and as workload.
    if pagetide_lab::serve_if_asked() {
        return ExitCode::SUCCESS;
    }
    pagetide_lab::file_size_is_an_error();
    clap_complete::CompleteEnv::with_factory(cli::definition).complete();
    exit::of(|| {
        let cli = cli::parse()?;
        carry(cli.carried());
        command::run(cli)
    })
}
