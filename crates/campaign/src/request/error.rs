//! Why a request for a campaign is refused.

use crate::file::FileError;
use crate::program::NoValue;
use crate::swaps::SwapConflict;
use crate::variants::NameTaken;

/// Why a request for a campaign is refused. The user sees this message unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Options that need a scenario are given, but no scenario.
    #[error("--param, --as-written and --scale need a scenario: name one")]
    NoScenario,
    /// No scenario has the name given.
    #[error("cannot run scenario \"{name}\": {hint}")]
    UnknownScenario {
        /// The unknown name as given.
        name: String,
        /// Advice: a known name that is similar; otherwise the known names, or the nearest of them if there are many.
        hint: String,
    },
    /// A value of `--observe` or `--profile` is given where a scenario is expected, because it follows a space.
    #[error(
        "`{word}` is no scenario: --observe and --profile take a value after an equals sign, as in --observe={word}"
    )]
    LooseValue {
        /// The value as given.
        word: String,
    },
    /// The name given for the campaign is not allowed.
    #[error(
        "`{name}` cannot name a campaign: use letters, digits, hyphens and underscores, beginning with a letter or digit"
    )]
    BadName {
        /// The campaign's name as given.
        name: String,
    },
    /// The scale is not a positive number.
    #[error("--scale {scale} is no size: give a number above 0")]
    BadScale {
        /// The scale as given.
        scale: f64,
    },
    /// The same value is given twice for a parameter.
    #[error("-p {key}={value} is given twice: give each value once")]
    SameValue {
        /// Name of the parameter.
        key: String,
        /// Value that is given twice.
        value: String,
    },
    /// A kernel that is already built is named together with patches, a source or kernel options, which need a build.
    #[error(
        "--vs patch= puts a patch on a source, and {kernel} is a kernel: name a source with --source instead"
    )]
    NoSource {
        /// The kernel as given.
        kernel: String,
    },
    /// A setting is not known, and its name resembles a known one.
    #[error("there is no setting `{name}`: did you mean `{near}`?")]
    UnknownSetting {
        /// The unknown name as given.
        name: String,
        /// The similar known name, which was probably meant.
        near: String,
    },
    /// A value given with `--vary` cannot be parsed.
    #[error("--vary {key} cannot have the value `{value}`: {why}")]
    Vary {
        /// The key that is varied.
        key: String,
        /// The value as given.
        value: String,
        /// Reason why the value cannot be parsed.
        why: String,
    },
    /// An environment variable of a program is given without a value.
    #[error(transparent)]
    NoValue(#[from] NoValue),
    /// An option is given together with a campaign file, although the file defines the same thing.
    #[error(
        "{option} cannot be combined with a campaign file: write it into {path}, or name a scenario instead"
    )]
    InTheFile {
        /// Name of the option.
        option: &'static str,
        /// Path of the campaign file.
        path: String,
    },
    /// A campaign file is given together with other files or scenarios.
    #[error("{path} cannot be combined with other names: run one campaign file at a time")]
    NotAlone {
        /// Path of the campaign file.
        path: String,
    },
    /// A scenario is given together with a user's own program.
    #[error("{word} cannot be combined with a program: run scenarios and programs separately")]
    BesideProgram {
        /// Name of the first scenario given.
        word: String,
    },
    /// A calibration is requested for several variants.
    #[error("a calibration makes its own harmless variants of one: give one --kernel and no --vs")]
    ManyVariants,
    /// A campaign that compares kernels or boot arguments was requested in the host arena, which has only the running
    /// kernel.
    #[error(
        "--on host runs on the kernel of this machine, and the variant {variant} has another kernel or boot argument than the first: \
         compare kernels in the exact arena"
    )]
    OneKernel {
        /// Name of the variant.
        variant: String,
    },
    /// An option for kernels is given together with the host arena.
    #[error(
        "--on host runs on the kernel of this machine, so it cannot be combined with {option}: leave one of them out"
    )]
    RunningKernel {
        /// Name of the option.
        option: &'static str,
    },
    /// Two variants have the same name.
    #[error(transparent)]
    NameTaken(#[from] NameTaken),
    /// Kinds of swap cannot be compared as variants.
    #[error(transparent)]
    Swap(#[from] SwapConflict),
    /// A campaign file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl RequestError {
    /// True if the user's input was wrong, as opposed to a failure of the machine.
    pub fn is_user_error(&self) -> bool {
        match self {
            Self::File(error) => error.is_user_error(),
            _ => true,
        }
    }
}
