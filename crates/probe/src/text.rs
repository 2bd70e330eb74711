//! Numbers that the kernel prints as text. They are read by name before, during and after a trial. Sampling does not
//! allocate.
//!
//! A [`Source`] describes the files, their format, and the meaning of their numbers. [`Text`] is the probe for any
//! source.

mod effect;
mod file;
mod reader;
mod source;

pub use effect::{Effect, observer_effect};
pub use file::TextFile;
pub use reader::Text;
pub use source::{Key, Kind, Owner, SOURCES, Source};
