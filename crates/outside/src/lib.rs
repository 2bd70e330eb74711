//! Input from outside: files that others wrote, and text that others chose.
//!
//! Every file that this process did not write itself is read through [`read`] or [`open`]. [`read`] has a size limit,
//! and neither blocks on a pipe without a writer, unless the user named it. [`shortened`] cuts long quotations in
//! messages. [`remedy`] tells the user what to do about an error of the system.
//!
//! This crate depends on no other crate of the workspace. Start reading in [`FileOrigin`].

mod file;
mod json;
mod quote;
mod refusal;

pub use file::{FileOrigin, create, lock_file, open, read, read_text, replace};
pub use json::readable_json;
pub use quote::shortened;
pub use refusal::{Refusal, remedy};
