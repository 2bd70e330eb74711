//! Counters the kernel prints as text: before, after and as a series; parsed without allocating per sample.
//!
//! [`Counters`] holds what is a name and a number; the files with more structure have types of their own. [`TextFile`]
//! keeps a source open and its buffer ready, [`TextProbe`] all of them over a trial, [`Snapshot`] is before and after, a series what happened in between.

mod counters;
mod file;
mod keyed;
mod known;
mod probe;
mod psi;
pub(crate) mod scan;
mod snapshot;
mod swaps;

pub use counters::{Counters, Delta, Syntax};
pub use file::{Parse, TextFile};
pub use keyed::{Keyed, KeyedSource};
pub use known::{KNOWN, Kind, Known, Unit, known};
pub use probe::{Named, TextProbe, TextRecord, TextSettings, Unsupported};
pub use psi::{Psi, PsiLine};
pub use snapshot::{Effect, Snapshot, observer_effect};
pub use swaps::{SwapArea, Swaps};
