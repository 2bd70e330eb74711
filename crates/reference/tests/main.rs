//! Tests of reference strings: patterns, files and golden values.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod api;
mod files;
mod fuzz;
mod golden;
mod properties;
