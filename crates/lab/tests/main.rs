//! Tests of shipped campaigns.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod counts;
mod papers;
