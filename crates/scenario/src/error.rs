//! Why a scenario cannot run, and why it stopped early.

use std::io;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::Invalid;
use pagetide_reference::{PatternError, StringError};

/// Why a scenario or its parameters are refused before anything starts.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// No scenario has this name.
    #[error("cannot run scenario \"{given}\": {hint}")]
    Unknown {
        /// The given name.
        given: String,
        /// A similar name, or all names.
        hint: String,
    },
    /// The scenario has no parameter with this name.
    #[error("cannot set \"{given}\" of scenario {scenario}: {hint}")]
    UnknownParameter {
        /// Name of the scenario.
        scenario: String,
        /// The given parameter.
        given: String,
        /// A similar name, or all names.
        hint: String,
    },
    /// A value cannot be parsed.
    #[error("cannot set {parameter} of scenario {scenario} to \"{given}\": {why}")]
    BadValue {
        /// Name of the scenario.
        scenario: String,
        /// Name of the parameter.
        parameter: &'static str,
        /// The given value.
        given: String,
        /// What is wrong, and what to give instead.
        why: String,
    },
    /// A value is out of bounds.
    #[error("cannot set {parameter} of scenario {scenario} to {value}: give {bounds}")]
    OutOfBounds {
        /// Name of the scenario.
        scenario: String,
        /// Name of the parameter.
        parameter: &'static str,
        /// The value.
        value: String,
        /// Allowed values.
        bounds: String,
    },
    /// A parameter has not been resolved.
    #[error("cannot read {parameter}: it is not among the resolved parameters, resolve them first")]
    Unresolved {
        /// Name of the parameter.
        parameter: &'static str,
    },
    /// The original form was requested, but the scenario has none.
    #[error(
        "cannot run scenario {scenario} as written: it has no original, leave --as-written out"
    )]
    NoOriginal {
        /// Name of the scenario.
        scenario: String,
    },
    /// More memory would be locked than is available.
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
        /// The largest amount that can be locked.
        most: Bytes,
    },
    /// The workload does not fit into memory and swap.
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
    /// Parameters contradict each other.
    #[error("cannot run scenario {scenario}: {why}")]
    Contradiction {
        /// Name of the scenario.
        scenario: String,
        /// Which parameters, and what to change.
        why: String,
    },
    /// The pattern cannot be parsed.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The pattern cannot generate references.
    #[error(transparent)]
    References(#[from] StringError),
}

/// Why a scenario stopped early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    /// A system call failed.
    #[error("{attempt}: {source}")]
    System {
        /// What was attempted.
        attempt: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A reason that has a record entry.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The parameters turned out to be unusable.
    #[error(transparent)]
    Refused(#[from] ScenarioError),
}

impl Stop {
    /// The error of the last system call, as the reason that `attempt` failed.
    pub(crate) fn last(attempt: impl Into<String>) -> Self {
        Self::System {
            attempt: attempt.into(),
            source: io::Error::last_os_error(),
        }
    }

    /// Adds `attempt` to an error of the operating system.
    pub(crate) fn system(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System {
            attempt: attempt.into(),
            source,
        }
    }

    /// Converts to the reason that is stored in the record.
    pub(crate) fn into_invalid(self) -> Invalid {
        match self {
            Self::Invalid(invalid) => invalid,
            other => Invalid::Scenario {
                why: other.to_string(),
            },
        }
    }

    /// A process was killed by the kernel's OOM killer.
    pub(crate) fn killed(process: &str, after: Nanos) -> Self {
        Self::Invalid(Invalid::OutOfMemory {
            process: process.to_owned(),
            after,
        })
    }
}
