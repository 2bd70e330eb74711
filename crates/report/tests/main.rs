//! Tests of all output formats with made-up records.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod case;
mod data;
mod deaths;
mod effects;
mod fuzz;
mod import;
mod imports;
mod judge;
mod judges;
mod old_store;
mod pairing;
mod paper;
mod terminal;
mod text;
mod twins;
mod why;
