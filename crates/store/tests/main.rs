//! Tests of the store: normal use, damage, and killed processes.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod common;
mod damage;
mod merge;
mod store;
mod store_killed;
