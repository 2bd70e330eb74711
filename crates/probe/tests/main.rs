//! Analysis of traces from several kernels.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod fuzz;
mod kernels;
mod malformed;
mod published;
mod stacks;
mod written;
