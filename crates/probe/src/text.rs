//! Numbers the kernel prints as text, by name: before, after and as a series, parsed without allocating for a sample.
//!
//! A [`Source`] says which files, how they are written and what their numbers mean; [`Text`] is the probe for any of them.

mod effect;
mod file;
mod reader;
mod source;

pub use effect::{Effect, observer_effect};
pub use file::TextFile;
pub use reader::Text;
pub use source::{Key, Kind, Owner, SOURCES, Source};
