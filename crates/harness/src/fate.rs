//! The state of a machine after its trial: it ends or continues.

/// The state of a machine after its trial. It decides whether changes must be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineFate {
    /// The machine ends. Restoring changes would only cost time.
    Ends,
    /// The machine continues, so everything that the trial changed must be restored.
    Continues,
}
