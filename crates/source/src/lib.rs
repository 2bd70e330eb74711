//! Kernel sources: fetched, patched, configured and built into kernels of the cache.
//!
//! A [`Recipe`] is what is asked for: a source, a configuration, patches. A [`Workshop`] turns it into a kernel of the cache
//! that any arena can boot. Sources lie unpacked in the cache, each with one build folder for each configuration, which is
//! kept, so that the next patch compiles only what it touches. The user's own trees are never written.
//!
//! This crate knows nothing of emulators, guests, trials or records.
//!
//! Begin with [`Recipe`] (what may be asked for), then [`Workshop`] (the way from there to a kernel), then [`Series`] (how
//! patches are read).

mod apply;
mod clean;
mod config;
mod debian;
mod diff;
mod error;
mod fault;
mod foresight;
mod git;
mod history;
mod mail;
mod make;
mod options;
mod recipe;
mod room;
mod series;
mod step;
pub mod tools;
mod tree;
mod variants;
mod workshop;

pub use config::FRAGMENT;
pub use error::SourceError;
pub use foresight::{BuildForecast, BuildState, VariantForecast};
pub use history::{Commit, Commits};
pub use recipe::{ConfigRef, Recipe, SourceRef};
pub use series::{Patch, Series};
pub use step::{BuildStep, Watch};
pub use variants::{Delivery, Order, OrderError};
pub use workshop::{BuiltKernel, Workshop};
