//! Explanations of made-up accounts: what adds up, what ranks first, and what is not said.

mod account;
mod causes;
mod claims;
mod laws;
mod waits;
