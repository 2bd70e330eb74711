//! Why a trial has no record.

use pagetide_record::FileError;

/// Why a trial has no record. A trial that ran but must not be used is no error: it is a
/// [`Finding`](crate::Finding) whose results say
/// why they are invalid.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// This trial cannot run here, although it was asked for rightly: a kernel without what the variant needs. Found in
    /// [`Arena::prepare`](crate::Arena::prepare), before any trial.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The trial was asked for wrongly: an unknown scenario or setting, a parameter out of bounds. Found in
    /// [`Arena::prepare`](crate::Arena::prepare), before any trial.
    #[error(transparent)]
    Wrong(Box<dyn std::error::Error + Send + Sync>),
    /// The arena could not do its work: no emulator, no memory, a full disk. Other trials would meet the same.
    #[error(transparent)]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    /// The record could not be written.
    #[error(transparent)]
    Sink(#[from] FileError),
    /// The trial was told to stop and left nothing behind.
    #[error("the trial was stopped before its end: run the campaign again to go on from here")]
    Stopped,
}

impl ArenaError {
    /// Whether a user's words were wrong, rather than that the machine could not.
    pub fn is_by_words(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }

    /// The trial was asked for wrongly.
    pub fn wrong(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Wrong(why.into())
    }

    /// The trial cannot run here.
    pub fn refused(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Refused(why.into())
    }

    /// The arena could not do its work.
    pub fn broken(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Broken(why.into())
    }
}
