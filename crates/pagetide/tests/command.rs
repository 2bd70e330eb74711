//! Tests without a guest: command line, files, and structure of the repository. Part of `make check`.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod circles;
#[allow(dead_code, reason = "other test programs use the rest")]
mod common;
mod house;
mod manual;
mod terminal;
mod usage;
