//! Tests of kernels from packages and files, and of the cache.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod cache;
mod files;
mod fuzz;
mod network;
mod packages;
mod sample;
