//! Reasons why a trial has no record.

use pagetide_record::FileError;

/// Why a trial has no record. A trial that ran but must not be used is not an error: it has a
/// [`TrialResult`](crate::TrialResult) with the reasons in its results.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// The request is valid, but this trial cannot run here. For example, the kernel lacks a feature that the variant
    /// needs. Usually returned by [`Arena::prepare`](crate::Arena::prepare), before any trial;
    /// [`Arena::run`](crate::Arena::run) returns it if the guest does not boot.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The trial cannot run on the variant's kernel, but it can run on a kernel that is known. Returned by
    /// [`Arena::prepare`](crate::Arena::prepare), before any trial runs.
    #[error("{why}; --kernel {kernel} has all that is needed")]
    OtherKernel {
        /// Reason why the trial cannot run on the variant's kernel.
        why: Box<dyn std::error::Error + Send + Sync>,
        /// Name of a kernel on which the trial can run, as the user types it.
        kernel: String,
    },
    /// The request is invalid: for example, an unknown scenario or setting, or a parameter out of bounds. Returned by
    /// [`Arena::prepare`](crate::Arena::prepare), before any trial.
    #[error(transparent)]
    Wrong(Box<dyn std::error::Error + Send + Sync>),
    /// The arena does not work: no emulator, no memory, a full disk. Other trials would fail in the same way.
    #[error(transparent)]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    /// The record could not be written.
    #[error(transparent)]
    Sink(#[from] FileError),
    /// The trial was stopped on request, and has been cleaned up.
    #[error("the trial was stopped before its end: run the campaign again to go on from here")]
    Stopped,
}

impl ArenaError {
    /// Returns true if the user's request was invalid ([`ArenaError::Wrong`]); false for all other errors.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }

    /// Creates an [`ArenaError::Wrong`]: the request is invalid for the reason `why`.
    pub fn wrong(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Wrong(why.into())
    }

    /// Creates an [`ArenaError::Refused`]: the request is valid, but the trial cannot run here for the reason `why`.
    pub fn refused(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Refused(why.into())
    }

    /// Creates an [`ArenaError::Broken`]: the arena does not work for the reason `why`.
    pub fn broken(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Broken(why.into())
    }
}
