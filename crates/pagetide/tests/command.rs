//! The tool without a guest: its words, its files, its place in the house. Part of `make check`.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

#[allow(dead_code, reason = "tests with guests use the rest")]
mod common;
mod house;
mod manual;
mod terminal;
mod usage;
