//! Debian packages through the machine's own apt.
//!
//! `sources.rs` asks it for the mirrors the machine already uses, `state.rs` runs apt in a folder of its own, `select.rs`
//! chooses among what an archive offers. The archive is a trait so that choosing is tested without any network.

mod select;
mod sources;
mod state;

use std::path::{Path, PathBuf};

use crate::deb::Control;
use crate::error::KernelError;

#[cfg(test)]
pub use select::double;
pub use select::{Choice, KernelQuery, candidates, with_parts};
pub use sources::Sites;
pub use state::{Apt, Programs};

/// Somewhere packages can be looked up and fetched from.
pub trait Archive {
    /// Its name in messages: a suite, say.
    fn place(&self) -> String;

    /// Fetches the lists of packages anew; returns the suites that could not be had and that it can do without.
    fn update(&mut self) -> Result<Vec<String>, KernelError>;

    /// How long ago the lists were fetched, in seconds; `None` if there are none.
    fn age(&self) -> Option<u64>;

    /// Names of all packages that begin so.
    fn names(&self, start: &str) -> Result<Vec<String>, KernelError>;

    /// Every version of these packages; names that are not there are passed over.
    fn show(&self, names: &[&str]) -> Result<Vec<Control>, KernelError>;

    /// Fetches one package into an empty folder, checked against the archive's signature.
    fn download(&self, package: &Control, into: &Path) -> Result<PathBuf, KernelError>;
}
