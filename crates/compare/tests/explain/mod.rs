//! Explanations of made-up accounts: what adds up, what ranks first, and what is not said.

// Helpers of tests may unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod account;
mod causes;
mod claims;
mod laws;
mod waits;
