//! The store: kept, damaged and killed.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod common;
mod damage;
mod store;
mod store_killed;
