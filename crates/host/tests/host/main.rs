//! The journal, the guardian, groups and swap on the machine that runs the tests.
#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;
mod groups;
mod journals;
mod killed;
mod swaps;
