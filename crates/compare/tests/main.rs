//! Comparisons and explanations over made-up records.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod compare;
mod explain;
mod kinds;
mod notes;
