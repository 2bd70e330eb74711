//! Tests of campaign files, and of campaigns in a scripted arena.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod batch;
mod bisect;
mod common;
mod deepen;
mod file;
mod forecast;
mod fuzz;
mod run;
mod shard;
mod swaps;
