//! A sentence below a table, with its style.

use crate::draw::Ink;

/// A sentence with its style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Style in which the sentence is printed.
    pub ink: Ink,
    /// Text of the sentence.
    pub text: String,
}
