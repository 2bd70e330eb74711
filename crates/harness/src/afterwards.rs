//! What becomes of a machine when its trial is over.

/// What becomes of a machine when its trial is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// It ends. Restoring what was changed would only cost time.
    Ends,
    /// It goes on, and must be left as it was found.
    GoesOn,
}
