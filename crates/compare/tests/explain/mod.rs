//! Explanations of made-up accounts: sums, ranking, and what is left out.

mod account;
mod causes;
mod claims;
mod laws;
mod waits;
