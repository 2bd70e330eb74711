//! A sentence below a table, with its style, and lists in sentences.

use crate::draw::Ink;

/// A sentence with its style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Style in which the sentence is printed.
    pub ink: Ink,
    /// Text of the sentence.
    pub text: String,
}

/// Joins words to a list for a sentence: `a, b and c`. `last` is the word before the last element.
pub(crate) fn listed(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
