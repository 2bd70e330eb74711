//! Reasons why a scenario cannot run, or stopped early.

use std::io;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::Invalid;
use pagetide_reference::{PatternError, StringError};

/// Why a scenario or its parameters are refused before anything starts.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// No scenario has the given name.
    #[error("cannot run scenario \"{given}\": {hint}")]
    Unknown {
        /// Name that was given.
        given: String,
        /// A similar name, or all names.
        hint: String,
    },
    /// The scenario has no parameter with the given name.
    #[error("cannot set \"{given}\" of scenario {scenario}: {hint}")]
    UnknownParameter {
        /// Name of the scenario.
        scenario: String,
        /// Parameter name that was given.
        given: String,
        /// A similar name, or all names.
        hint: String,
    },
    /// The value of a parameter cannot be parsed.
    #[error("cannot set {parameter} of scenario {scenario} to \"{given}\": {why}")]
    BadValue {
        /// Name of the scenario.
        scenario: String,
        /// Name of the parameter.
        parameter: &'static str,
        /// Value that was given.
        given: String,
        /// What is wrong with the value, and what to give instead.
        why: String,
    },
    /// The value of a parameter is out of bounds.
    #[error("cannot set {parameter} of scenario {scenario} to {value}: give {bounds}")]
    OutOfBounds {
        /// Name of the scenario.
        scenario: String,
        /// Name of the parameter.
        parameter: &'static str,
        /// Value that is out of bounds.
        value: String,
        /// Allowed values, in words.
        bounds: String,
    },
    /// A parameter has not been resolved.
    #[error("cannot read {parameter}: it is not among the resolved parameters, resolve them first")]
    Unresolved {
        /// Name of the parameter.
        parameter: &'static str,
    },
    /// The original form was requested, but the scenario has no original.
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
        /// Memory that would be locked.
        locked: Bytes,
        /// Memory that is free.
        memory: Bytes,
        /// Maximum amount that can be locked.
        most: Bytes,
    },
    /// The workload does not fit into memory and swap.
    #[error(
        "cannot hold {wanted} of anonymous memory in {memory} of memory and {swap} of swap: \
         lower the sizes or enlarge the swap"
    )]
    TooLarge {
        /// Anonymous memory that the workload needs.
        wanted: Bytes,
        /// Memory that is free.
        memory: Bytes,
        /// Size of the swap device.
        swap: Bytes,
    },
    /// Parameters contradict each other.
    #[error("cannot run scenario {scenario}: {why}")]
    Contradiction {
        /// Name of the scenario.
        scenario: String,
        /// Which parameters contradict each other, and what to change.
        why: String,
    },
    /// The reference pattern cannot be parsed.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The reference pattern cannot generate references.
    #[error(transparent)]
    References(#[from] StringError),
}

/// Why a running scenario stopped early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    /// A system call of the scenario failed.
    #[error("{attempt}: {source}")]
    System {
        /// What the call was for, as the beginning of a message.
        attempt: String,
        /// Error from the operating system.
        source: io::Error,
    },
    /// The numbers of the trial must not be used. The reason is stored in the record.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The parameters turned out to be unusable.
    #[error(transparent)]
    Refused(#[from] ScenarioError),
}

impl Stop {
    /// Returns the error of the last system call; `attempt` says what the call was for.
    pub(crate) fn last(attempt: impl Into<String>) -> Self {
        Self::System {
            attempt: attempt.into(),
            source: io::Error::last_os_error(),
        }
    }

    /// Returns a function that converts an I/O error to [`Self::System`] with this `attempt`.
    pub(crate) fn system(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System {
            attempt: attempt.into(),
            source,
        }
    }

    /// Converts the error to the reason that is stored in the record.
    pub(crate) fn into_invalid(self) -> Invalid {
        match self {
            Self::Invalid(invalid) => invalid,
            other => Invalid::Scenario {
                why: other.to_string(),
            },
        }
    }

    /// Returns the error for a process that the OOM killer killed; `after` is the time since it started.
    pub(crate) fn killed(process: &str, after: Nanos) -> Self {
        Self::Invalid(Invalid::OutOfMemory {
            process: process.to_owned(),
            after,
        })
    }
}
