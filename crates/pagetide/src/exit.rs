//! Ends the program: turns every error into one sentence and one exit code.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Error;
use pagetide_arena::ArenaError;
use pagetide_campaign::matrix::MatrixError;
use pagetide_campaign::squeeze::SqueezeError;
use pagetide_campaign::{FileError, RequestError, RunError};
use pagetide_compare::{CompareError, Comparison, FailOn};
use pagetide_kernel::KernelError;
use pagetide_lab::LabError;
use pagetide_oracle::ParameterError;
use pagetide_record::NodesError;
use pagetide_reference::{PatternError, StringError};
use pagetide_report::failure::{is_closed_reader, sentence};
use pagetide_report::html::SubjectError;
use pagetide_report::import::ImportError;
use pagetide_report::terminal::show::NoSection;
use pagetide_scenario::ScenarioError;
use pagetide_source::SourceError;
use pagetide_store::StoreError;

use crate::output::say;

/// Result of a command that ran without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command succeeded, and no metric regressed.
    Done,
    /// A metric regressed.
    Regressed,
    /// The command could not do its work; its output already states why.
    Unable,
    /// The result is inconclusive or confounded, or the records must not be used.
    Open,
}

impl End {
    /// Returns the result of a command that made this comparison. `fail_on` states which verdicts lead to an exit code
    /// other than 0.
    pub fn of(comparison: &Comparison, fail_on: FailOn) -> Self {
        match comparison.exit_code(fail_on) {
            0 => Self::Done,
            1 => Self::Regressed,
            _ => Self::Open,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Regressed => 1,
            Self::Unable => UNABLE,
            Self::Open => 3,
        }
    }
}

/// Exit code if the command could not do its work.
const UNABLE: u8 = 2;
/// Exit code if the command line or a campaign file is wrong.
const USAGE: u8 = 4;

/// Text that lists the exit codes, for help and man page.
pub const CODES: &str = "\
Exit codes:
  0  done, nothing regressed
  1  a regression was found
  2  it could not be done
  3  inconclusive or confounded, or the results must not be used
  4  it was asked for wrongly
  130, 143  stopped by Ctrl-C, by SIGTERM; what is stored stays";

/// An error in the user's input. The sentence states what is wrong and how to correct it.
#[derive(Debug)]
pub struct Usage(String);

impl Usage {
    /// Returns a usage error with this sentence.
    pub fn error(sentence: impl Into<String>) -> Error {
        Error::new(Self(sentence.into()))
    }
}

impl Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Runs `program`, prints its error if there is one, and returns the exit code.
pub fn of(program: impl FnOnce() -> Result<End, Error>) -> ExitCode {
    let code = match program() {
        Ok(end) => end.code(),
        // The reader of the output has closed the pipe, as in `pagetide list records | head`.
        Err(error) if is_closed_reader(error.chain()) => 0,
        Err(error) => match error.downcast::<clap::Error>() {
            Ok(clap) => parsed(&clap),
            Err(error) => {
                say(&format!(
                    "pagetide: {}",
                    sentence(error.chain()).replace('\n', " ")
                ));
                code(&error)
            }
        },
    };
    let stopped = (code == UNABLE)
        .then(pagetide_lab::interrupt_code)
        .flatten();
    ExitCode::from(stopped.unwrap_or(code))
}

/// Prints clap's result and returns the exit code. Help and version are successful output; all other errors are usage
/// errors.
fn parsed(error: &clap::Error) -> u8 {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    if !matches!(error.kind(), DisplayHelp | DisplayVersion) {
        say(error.render().to_string().trim_end());
        return USAGE;
    }
    // Standard output is buffered by lines: only the flush shows whether the last line can be written.
    match error.print().and_then(|()| io::stdout().flush()) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => {
            say(&format!("pagetide: writing to standard output: {why}"));
            UNABLE
        }
        _ => 0,
    }
}

/// Returns the exit code of an error: 4 if the user's input is wrong, 2 if the work failed.
fn code(error: &Error) -> u8 {
    fn is<T: std::error::Error + 'static>(
        cause: &(dyn std::error::Error + 'static),
        by_words: fn(&T) -> bool,
    ) -> bool {
        cause.downcast_ref().is_some_and(by_words)
    }
    let by_words = error.chain().any(|cause| {
        cause.is::<Usage>()
            || cause.is::<NoSection>()
            || cause.is::<ScenarioError>()
            || cause.is::<ParameterError>()
            || cause.is::<SqueezeError>()
            || cause.is::<MatrixError>()
            || cause.is::<NodesError>()
            || cause.is::<PatternError>()
            || cause.is::<StringError>()
            || is(cause, ArenaError::is_user_error)
            || is(cause, CompareError::is_user_error)
            || is(cause, FileError::is_user_error)
            || is(cause, ImportError::is_user_error)
            || is(cause, KernelError::is_user_error)
            || is(cause, LabError::is_user_error)
            || is(cause, RequestError::is_user_error)
            || is(cause, RunError::is_user_error)
            || is(cause, pagetide_reference::SourceError::is_user_error)
            || is(cause, SourceError::is_user_error)
            || is(cause, StoreError::is_user_error)
            || is(cause, SubjectError::is_user_error)
    });
    if by_words { USAGE } else { UNABLE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_words_and_weak_machines_have_codes_of_their_own() {
        assert_eq!(code(&Usage::error("no such thing")), USAGE);
        assert_eq!(code(&Error::new(io::Error::other("disk"))), UNABLE);
        let scenario = Error::new(pagetide_scenario::find("lineer").unwrap_err());
        assert_eq!(code(&scenario.context("asking")), USAGE);
    }
}
