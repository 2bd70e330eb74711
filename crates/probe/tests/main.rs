//! Tests of the analysis of stored and synthetic traces: of several kernels, published, malformed and fuzzed.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod fuzz;
mod kernels;
mod malformed;
mod published;
mod stacks;
mod written;
