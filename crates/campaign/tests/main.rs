//! Tests of campaign files, and of campaigns in a scripted arena.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod batch;
mod bisect;
mod common;
mod deepen;
mod file;
mod forecast;
mod futility;
mod fuzz;
mod interruption;
mod matrix;
mod order;
mod refusal;
mod reuse;
mod sampling;
mod settling;
mod several;
mod shard;
mod swaps;
