//! Kernel sources: fetched, patched, configured and built into kernels of the cache.
//!
//! A [`Recipe`] states a source, a configuration and patches. A [`Workshop`] builds it into a kernel of the cache that
//! any arena can boot. Sources are unpacked in the cache. Each has one build folder per configuration; build folders
//! are kept, so that a new patch compiles only the files it changes. The user's own trees are never written.
//!
//! This crate does not depend on emulators, guests, trials or records.
//!
//! Start reading in [`Recipe`] (the request), then [`Workshop`] (building a kernel), then [`Series`] (reading patches).

mod apply;
mod build_forecast;
mod changed;
mod clean;
mod compile;
mod config;
mod debian;
mod delta;
mod diff;
mod error;
mod fault;
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

pub use build_forecast::{BuildForecast, BuildState};
pub use config::FRAGMENT;
pub use error::SourceError;
pub use history::{Commit, Commits};
pub use recipe::{ConfigRef, Recipe, SourceRef};
pub use series::{Patch, Series};
pub use step::{BuildStep, OnStep};
pub use variants::{Delivery, Order, OrderError, VariantForecast};
pub use workshop::{BuiltKernel, Workshop};
