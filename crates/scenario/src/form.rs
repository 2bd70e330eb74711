//! Corrected and original scenarios.

/// Whether a scenario runs in its corrected form or as originally written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The mistakes of the original are corrected.
    Repaired,
    /// The same as the original, including its mistakes.
    AsWritten,
}

pub(crate) const fn form(as_written: bool) -> Form {
    if as_written {
        Form::AsWritten
    } else {
        Form::Repaired
    }
}
