//! Results at one tested size of a search for the smallest memory.

use pagetide_verdict::squeeze::Point;
use serde::{Deserialize, Serialize};

/// Results of the runs at one tested size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedSize {
    /// Tested size and slowdown, as the search uses them.
    #[serde(flatten)]
    pub point: Point,
    /// Means over the runs at this size.
    #[serde(flatten)]
    pub means: RunMeans,
    /// Slowdown and waiting of the runs at this size. Each run is compared with the run of the same seed at the largest
    /// memory (`plenty`).
    #[serde(default)]
    pub pressed: Vec<Pressed>,
}

/// Means over those runs at one size that finished. A field is `None` if its quantity was not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunMeans {
    /// Time from the start of the scenario to its end, in nanoseconds.
    pub elapsed: Option<f64>,
    /// Number of refaulted pages.
    pub refaults: Option<f64>,
    /// Number of pages written to swap.
    pub swapped_out: Option<f64>,
    /// Share of the time during which at least one task waited for memory.
    pub psi_some: Option<f64>,
    /// Share of the time during which all non-idle tasks waited for memory.
    pub psi_full: Option<f64>,
    /// Peak memory of the program's memory cgroup, in bytes.
    pub group_peak: Option<f64>,
}

/// Slowdown and waiting of one run. The slowdown is relative to the run with the same seed at the largest memory
/// (`plenty`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressed {
    /// Number of the block that determines the seed.
    pub seed: u32,
    /// Slowdown of the run as a share: 0.1 means 10 % slower.
    pub slowdown: f64,
    /// Share of the run's time during which at least one task waited for memory.
    pub some: f64,
    /// Share of the run's time during which all non-idle tasks waited for memory.
    pub full: f64,
}
