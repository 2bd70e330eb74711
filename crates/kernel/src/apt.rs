//! Debian packages, fetched with the apt of this machine.
//!
//! `sources.rs` reads which mirrors the machine uses. `state.rs` runs apt with its state in a private folder.
//! `sandbox.rs` determines the user that apt fetches as. `select.rs` chooses among the packages of an archive. The
//! archive is a trait, so that choosing can be tested without a network.

mod sandbox;
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

/// A source of Debian packages: lists them and fetches them.
pub trait Archive {
    /// Returns the name of the archive for messages, such as a suite.
    fn place(&self) -> String;

    /// Fetches the package lists again. Returns the optional suites that could not be fetched. Fails if a required
    /// suite could not be fetched.
    fn update(&mut self) -> Result<Vec<String>, KernelError>;

    /// Returns the age of the package lists in seconds; `None` if there are none.
    fn age(&self) -> Option<u64>;

    /// Returns the names of all packages that begin with `start`.
    fn names(&self, start: &str) -> Result<Vec<String>, KernelError>;

    /// Returns the control fields of all versions of these packages. Names that are not in the archive are ignored.
    fn show(&self, names: &[&str]) -> Result<Vec<Control>, KernelError>;

    /// Downloads one package into `into`, which must be empty, and returns the path of the file. apt checks the
    /// archive's signature. Fails if apt cannot fetch the package.
    fn download(&self, package: &Control, into: &Path) -> Result<PathBuf, KernelError>;
}
