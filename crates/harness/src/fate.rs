//! What happens to a machine after its trial.

/// What happens to a machine after its trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineFate {
    /// It ends. Restoring what was changed would only cost time.
    Ends,
    /// It continues, and must be left as it was before.
    Continues,
}
