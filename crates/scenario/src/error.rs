//! Why a scenario cannot be run as asked for, and why it stopped.

use std::io;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::Invalid;
use pagetide_reference::{PatternError, StringError};

/// Why a scenario or its parameters are refused, before anything is started.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// No scenario has this name.
    #[error("cannot run scenario \"{given}\": {hint}")]
    Unknown {
        /// The name as given.
        given: String,
        /// A near name, or all names.
        hint: String,
    },
    /// The scenario has no parameter of this name.
    #[error("cannot set \"{given}\" of scenario {scenario}: {hint}")]
    UnknownParameter {
        /// Name of the scenario.
        scenario: String,
        /// The parameter as given.
        given: String,
        /// A near name, or all names.
        hint: String,
    },
    /// A value cannot be read.
    #[error("cannot set {parameter} of scenario {scenario} to \"{given}\": {why}")]
    BadValue {
        /// Name of the scenario.
        scenario: String,
        /// Name of the parameter.
        parameter: &'static str,
        /// The value as given.
        given: String,
        /// What is wrong, and what to give instead.
        why: String,
    },
    /// A value lies outside its bounds.
    #[error("cannot set {parameter} of scenario {scenario} to {value}: give {bounds}")]
    OutOfBounds {
        /// Name of the scenario.
        scenario: String,
        /// Name of the parameter.
        parameter: &'static str,
        /// The value.
        value: String,
        /// What is allowed.
        bounds: String,
    },
    /// A parameter was not resolved.
    #[error("cannot read {parameter}: it is not among the resolved parameters, resolve them first")]
    Unresolved {
        /// Name of the parameter.
        parameter: &'static str,
    },
    /// The original form was asked for of a scenario that has none.
    #[error(
        "cannot run scenario {scenario} as written: it has no original, leave --as-written out"
    )]
    NoOriginal {
        /// Name of the scenario.
        scenario: String,
    },
    /// More memory would be locked than there is.
    #[error(
        "cannot lock {locked} of {memory} free memory in scenario {scenario}: lock at most {most}"
    )]
    TooMuchLocked {
        /// Name of the scenario.
        scenario: String,
        /// Memory to be locked.
        locked: Bytes,
        /// Free memory.
        memory: Bytes,
        /// The most that leaves room to run.
        most: Bytes,
    },
    /// The workload fits neither memory nor swap.
    #[error(
        "cannot hold {wanted} of anonymous memory in {memory} of memory and {swap} of swap: \
         lower the sizes or enlarge the swap"
    )]
    TooLarge {
        /// Anonymous memory of the workload.
        wanted: Bytes,
        /// Free memory.
        memory: Bytes,
        /// Size of the swap.
        swap: Bytes,
    },
    /// The parameters contradict each other.
    #[error("cannot run scenario {scenario}: {why}")]
    Contradiction {
        /// Name of the scenario.
        scenario: String,
        /// What contradicts what, and what to change.
        why: String,
    },
    /// The pattern cannot be read.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// No references can be made of the pattern.
    #[error(transparent)]
    References(#[from] StringError),
}

/// Why a scenario stopped before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    /// The system refused something.
    #[error("{attempt}: {source}")]
    System {
        /// What was attempted, on what.
        attempt: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A reason that the record knows.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The parameters turned out not to be usable.
    #[error(transparent)]
    Refused(#[from] ScenarioError),
}

impl Stop {
    /// The last system call's error as the reason why `attempt` did not succeed.
    pub(crate) fn last(attempt: impl Into<String>) -> Self {
        Self::System {
            attempt: attempt.into(),
            source: io::Error::last_os_error(),
        }
    }

    /// An error of the system's as the reason why `attempt` did not succeed.
    pub(crate) fn system(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System {
            attempt: attempt.into(),
            source,
        }
    }

    /// The reason as the record keeps it.
    pub(crate) fn into_invalid(self) -> Invalid {
        match self {
            Self::Invalid(invalid) => invalid,
            other => Invalid::Scenario {
                why: other.to_string(),
            },
        }
    }

    /// A process that was killed by the kernel's out-of-memory killer.
    pub(crate) fn killed(process: &str, after: Nanos) -> Self {
        Self::Invalid(Invalid::OutOfMemory {
            process: process.to_owned(),
            after,
        })
    }
}
