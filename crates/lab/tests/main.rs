//! What campaigns here come to.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod counts;
mod papers;
