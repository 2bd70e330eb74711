//! Reference strings: which page is touched when; portable random numbers; the files that hold strings.
//!
//! A scenario asks a [`Pattern`] for its [`References`] and touches the pages as they come. The same pattern, range,
//! number of references and seed give the same string on every platform and with every later version of this crate; a
//! change of any bit of it needs a new name ([`Rng::NAME`], [`STRINGS`]). So nothing here draws from elsewhere: the
//! generator is this crate's own, and sines and logarithms come from `libm` instead of the platform.
//!
//! It knows nothing of memory, kernels, scenarios or records: a page is an index, and there is no time.
//!
//! Begin reading at [`Pattern`], then `generate/`, one file per pattern, and `file/`, one per form; [`Rng`] stands alone.

mod file;
mod generate;
mod number;
mod pattern;
mod references;
mod rng;
mod source;

pub use file::{
    FileError, FileSummary, Form, PackedFile, Place, ReadError, Reader, check_file, open_file,
    pack_file, write_binary, write_counts, write_text,
};
pub use generate::hot_cold::HotCold;
pub use generate::scan::ScanWithHotCore;
pub use generate::zipf::Zipf;
pub use pattern::{
    About, MAX_PAGES, MAX_REFS, Parameter, ParameterKind, Pattern, PatternError, StringError,
    catalogue,
};
pub use references::{References, tally};
pub use rng::Rng;
pub use source::{Source, SourceError, StringFacts};

/// Name and version of the patterns: what each makes of a seed. It goes into records beside [`Rng::NAME`].
pub const STRINGS: &str = "pagetide-strings/1";
