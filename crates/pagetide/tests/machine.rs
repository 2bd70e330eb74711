//! Trials of the real binary on the running kernel, which change its swap, settings and memory groups. Part of
//! `make test`.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

#[allow(dead_code, reason = "other test programs use the rest")]
mod common;
mod hostile;
mod running_kernel;
