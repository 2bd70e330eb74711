//! Output of results: tables for terminal and mail, exchange formats, web pages; also imports results of other tools.
//!
//! This crate reads records and comparisons. It depends neither on arenas, nor on campaigns, nor on how a verdict is
//! computed. It measures nothing: every number printed is in its input or computed from it. Names and logs in records
//! are untrusted; the writer of each format makes them harmless (see [`draw::clean`]).
//!
//! Begin reading in [`terminal::verdicts`], the table most people see; then read [`draw`], the rendering functions.

/// Appends formatted text to a `String`; this cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)*);
    }};
}

pub mod about;
pub mod column_notes;
mod counters;
pub mod csv;
pub mod date;
pub mod draw;
pub mod failure;
pub mod format;
pub mod heat;
pub mod html;
pub mod import;
pub mod json;
pub mod kcidb;
mod kinds;
pub mod ktap;
pub mod mail;
pub mod markdown;
mod names;
pub mod nodes;
pub mod paper;
mod records;
mod sentence;
pub mod terminal;
pub mod tiers;
pub mod timeline;
pub mod trace;
pub mod why;
pub mod words;

pub use about::About;
pub use draw::TextStyle;
pub use format::Format;
