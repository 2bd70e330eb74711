//! Numbers that the kernel prints as text, by name: before, after and over time. Sampling does not allocate.
//!
//! A [`Source`] says which files it has, in which format, and what their numbers mean. [`Text`] is the probe for any
//! source.

mod effect;
mod file;
mod reader;
mod source;

pub use effect::{Effect, observer_effect};
pub use file::TextFile;
pub use reader::Text;
pub use source::{Key, Kind, Owner, SOURCES, Source};
