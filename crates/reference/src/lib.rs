//! Reference strings (the order in which pages are touched), portable random numbers, and files of reference strings.
//!
//! A scenario asks a [`Pattern`] for its [`References`] and touches the pages in that order. The same pattern, range,
//! number of references and seed give the same string on every platform and in every later version of this crate; a
//! change of a single bit needs a new name ([`Rng::NAME`], [`STRINGS`]). So nothing here uses other sources of
//! randomness: the generator is part of this crate, and sines and logarithms come from `libm` instead of the platform.
//!
//! This crate does not depend on memory, kernels, scenarios or records: a page is an index, and there is no time.
//!
//! Begin reading at [`Pattern`], then `generate/` (one file per pattern) and `file/` (one file per form). [`Rng`] is
//! independent of them.

mod file;
mod generate;
mod limits;
mod number;
mod pattern;
mod references;
mod rng;
mod source;

pub use file::{
    FileError, FileSummary, Form, PackedFile, Position, ReadError, Reader, check_file, open_file,
    pack_file, write_binary, write_counts, write_text,
};
pub use generate::cold_first::ColdFirst;
pub use generate::hot_cold::HotCold;
pub use generate::scan::ScanWithHotCore;
pub use generate::zipf::Zipf;
pub use limits::{MAX_PAGES, MAX_REFS};
pub use pattern::{About, Parameter, ParameterKind, Pattern, PatternError, StringError, catalogue};
pub use references::{References, tally};
pub use rng::Rng;
pub use source::{Source, SourceError, StringFacts};

/// Name and version of the algorithms of all patterns. It must change if any pattern gives another string for the same
/// seed. Stored in records next to [`Rng::NAME`].
pub const STRINGS: &str = "pagetide-strings/1";
