//! What is shown of a comparison: variants, cells, metrics, judgements.

use std::collections::BTreeMap;

use pagetide_record::{ArenaKind, Direction, Histogram, Machine, MemorySpec, SwapSpec, Unit};
use pagetide_verdict::Judgement;
use pagetide_verdict::judgement::Summary;
use serde::Serialize;

/// A metric in a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricRow {
    /// Name.
    pub name: String,
    /// Unit.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// Whether it decides.
    pub primary: bool,
    /// By variant, `None` where it has no valid trial.
    pub values: Vec<Option<Summary>>,
    /// By variant, `None` at the baseline.
    pub judgements: Vec<Option<Judgement>>,
}

/// What a comparison holds fixed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    /// Short label.
    pub label: String,
    /// Scenario.
    pub scenario: String,
    /// Whether as its original.
    pub as_written: bool,
    /// Parameters.
    pub params: BTreeMap<String, String>,
    /// Memory.
    pub memory: MemorySpec,
    /// Swap.
    pub swap: SwapSpec,
    /// The metrics.
    pub metrics: Vec<MetricRow>,
    /// Latency histograms by variant, all trials together.
    pub access: Vec<Option<Histogram>>,
}

/// A trial that is not used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InvalidTrial {
    /// Identity of its record.
    pub record: String,
    /// Label of its cell.
    pub label: String,
    /// Name of its variant.
    pub variant: String,
    /// Its seed.
    pub seed: u64,
    /// Why, as sentences.
    pub reasons: Vec<String>,
}

/// A variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VariantHead {
    /// Short name.
    pub name: String,
    /// Kernel release.
    pub release: String,
    /// Settings and boot arguments that make it, as text.
    pub settings: String,
}

/// Records of several variants, judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Title.
    pub title: String,
    /// Arena.
    pub arena: ArenaKind,
    /// Variants.
    pub variants: Vec<VariantHead>,
    /// Index of the baseline.
    pub baseline: usize,
    /// Cells.
    pub cells: Vec<Group>,
    /// Trials left out.
    pub invalid: Vec<InvalidTrial>,
    /// Command that repeats it.
    pub command: String,
    /// Machine.
    pub machine: Machine,
}
