//! Explanations of made-up accounts: their sums, the ranking of findings, and what is left out.

mod account;
mod causes;
mod claims;
mod laws;
mod waits;
