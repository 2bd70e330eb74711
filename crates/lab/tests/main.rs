//! Tests of the campaigns that are shipped with pagetide.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod counts;
mod papers;
