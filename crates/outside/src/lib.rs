//! What comes from outside: files that others wrote, and words that others chose.
//!
//! Every file that this program did not write in the same process is read through [`read`] or [`open`], within a stated limit
//! and without waiting for a pipe that nobody fills. What a message quotes is cut by [`shortened`], and what a user can do
//! about a refusal of the system is worded by [`remedy`].
//!
//! This crate stands at the bottom and knows nothing of any other. Begin reading in [`Place`].

mod file;
mod json;
mod quote;
mod refusal;

pub use file::{Place, create, lock_file, open, read, read_text, replace};
pub use json::readable_json;
pub use quote::shortened;
pub use refusal::{Refusal, remedy};
