//! How results are shown: terminal and mail tables, exchange formats, and what others measured, brought in.
//!
//! This crate reads records and comparisons. It knows nothing of arenas, campaigns or how a verdict is reached, and it
//! measures nothing: every number it prints was there before. Whatever names and logs hold is data; each format's
//! writer neutralises it (see [`draw::clean`]).
//!
//! Begin reading in [`terminal::verdicts`], the table most people see; then [`draw`], the means it is drawn with.

/// Adds formatted text to a `String`, which cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)*);
    }};
}

pub mod about;
pub mod beside;
mod counters;
pub mod csv;
pub mod date;
pub mod draw;
pub mod failure;
pub mod format;
pub mod html;
pub mod import;
pub mod json;
pub mod kcidb;
pub mod ktap;
pub mod mail;
pub mod markdown;
mod names;
pub mod paper;
pub mod terminal;
pub mod timeline;
pub mod trace;
pub mod why;
pub mod words;

pub use about::About;
pub use draw::Look;
pub use format::Format;
