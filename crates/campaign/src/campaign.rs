//! A campaign as data: the content of a campaign file or of a command line.

use std::collections::BTreeMap;
use std::str::FromStr;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::subject::hex;
use pagetide_record::{ArenaKind, CpusSpec, FilesSpec, MemorySpec, NodesSpec, SwapSpec, TraceRing};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::program::{NoValue, OwnProgram, ProgramPlace};
use pagetide_arena::VariantSpec;
use pagetide_compare::ALPHA;
use pagetide_verdict::signed_rank::smallest_p;

use crate::file::{Vocabulary, plain_name};

/// Default number of seeds for each variant and cell, sufficient for up to six primary metrics. With eight seeds, a
/// secondary metric that changes in the same direction with every seed can be decided too, if at least one in six
/// metrics judged with it is equally clear.
pub const DEFAULT_SEEDS: u32 = 8;
/// Minimum number of seeds that can decide a single primary metric.
const MIN_SEEDS: u32 = 6;
/// Default cap on seeds for a campaign that samples until every primary metric is decided.
pub const DEFAULT_CAP: u32 = 40;

/// A set of variants, scenarios and seeds, and the rules for sampling them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Short name under which the campaign's records are found.
    pub name: String,
    /// Kind of arena that runs the campaign's trials.
    pub arena: ArenaKind,
    /// Seed of the random order of the trials.
    pub seed: u64,
    /// Variants to compare; the first is the baseline.
    pub variants: Vec<VariantSpec>,
    /// Workloads, each with its parameters.
    pub scenarios: Vec<ScenarioSpec>,
    /// Number of trials, and the rule for ending.
    pub sampling: Sampling,
    /// Which trials also run an observed pass, with all probes.
    pub observe: Observe,
    /// Which trials also run a profiled pass, which counts instructions by function.
    #[serde(default, skip_serializing_if = "Observe::is_none")]
    pub profile: Observe,
    /// True if profiled trials also record references to pages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub references: bool,
    /// Size of the ring buffer for events of observed trials.
    #[serde(default, skip_serializing_if = "TraceRing::is_default")]
    pub trace_ring: TraceRing,
    /// Unrequested differences between variants that the user accepts: kinds such as `huge-pages`, or names of
    /// settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<String>,
}

impl Campaign {
    /// Requests that profiled trials record references to pages. If no trial is profiled, those of the first seed will
    /// be.
    pub(crate) fn record_references(&mut self) {
        self.references = true;
        if self.profile == Observe::None {
            self.profile = Observe::Seeds(1);
        }
    }

    /// Returns the name derived from the content: names of the scenarios (at most 80 bytes), and six hex digits of a
    /// hash over the whole campaign, including its present name. Equal campaigns have equal names.
    pub fn name_by_content(&self) -> String {
        /// Maximum number of bytes that the names of scenarios take in a campaign's name.
        const LONGEST: usize = 80;
        let text = serde_json::to_vec(self).unwrap_or_default();
        let digits = hex(&Sha256::digest(text)[..3]);
        let names: Vec<&str> = self
            .scenarios
            .iter()
            .map(|scenario| plain_name(&scenario.name))
            .collect();
        let mut name = names.join("-");
        name.truncate(name.floor_char_boundary(LONGEST));
        format!("{name}-{digits}")
    }

    /// Returns the number of primary metrics that are judged together: those of every cell, once for each variant
    /// except the baseline.
    pub fn primaries(&self, vocabulary: &Vocabulary) -> usize {
        let of_cells = self.cells().map(|cell| match &cell.primary {
            Some(primary) => primary.len(),
            None => vocabulary
                .scenario(&cell.scenario)
                .map_or(0, |words| words.primaries),
        });
        let of_cells: usize = of_cells.sum();
        of_cells * self.variants.len().saturating_sub(1)
    }

    /// Raises a default number of seeds to the number that the campaign's primary metrics need. A number that the user
    /// gave is kept.
    pub fn enough(&mut self, vocabulary: &Vocabulary) {
        let primaries = self.primaries(vocabulary);
        if let Until::Enough(seeds) = &mut self.sampling.until {
            *seeds = seeds_for(primaries).max(DEFAULT_SEEDS);
        }
    }

    /// Returns a sentence that says how many primary metrics this number of seeds can decide. `None` if nothing is
    /// compared, or if sampling ends only when every metric is decided.
    pub fn power(&self, vocabulary: &Vocabulary) -> Option<String> {
        let primaries = self.primaries(vocabulary);
        let metrics = match primaries {
            0 => return None,
            1 => "1 primary metric".to_owned(),
            many => format!("{many} primary metrics"),
        };
        let needed = seeds_for(primaries);
        match self.sampling.until {
            Until::Blocks(seeds) if seeds < needed => Some(format!(
                "{} for each variant cannot decide {metrics} together, however clear the result: {needed} are needed",
                if seeds == 1 {
                    "1 seed".to_owned()
                } else {
                    format!("{seeds} seeds")
                }
            )),
            Until::Blocks(seeds) | Until::Enough(seeds) => Some(format!(
                "{seeds} seeds for each variant; {needed} are the fewest that can decide {metrics} together"
            )),
            Until::Sure { .. } => None,
        }
    }
}

/// A scenario with its parameters. Lists of several values make a matrix of cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioSpec {
    /// Name of the scenario.
    pub name: String,
    /// True if the scenario runs as the paper wrote it, including the original's faults.
    pub as_written: bool,
    /// Parameters that the user set, by name, each with one or more values.
    pub params: BTreeMap<String, Vec<String>>,
    /// Sizes of the memory available to the workload. Each size makes a cell; an empty list makes one cell with the
    /// default.
    pub memory: Vec<MemorySpec>,
    /// NUMA nodes of the machine; the default value is a machine with one node.
    #[serde(default, skip_serializing_if = "NodesSpec::is_default")]
    pub nodes: NodesSpec,
    /// Memory limits (`memory.max`) of a cgroup around the whole workload. Each limit makes a cell; an empty list makes
    /// one cell without a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limit: Vec<Bytes>,
    /// Kinds of swap. Each kind makes a cell; an empty list makes one cell with the default.
    pub swap: Vec<SwapSpec>,
    /// Size of the swap device; `None` for the arena's default.
    pub swap_size: Option<Bytes>,
    /// Disk and file system for the scenario's files, if it has any.
    #[serde(default, skip_serializing_if = "FilesSpec::is_default")]
    pub files_on: FilesSpec,
    /// CPUs of the machine. Each value makes a cell; an empty list makes one cell with one CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<CpusSpec>,
    /// Names of the metrics that decide; `None` for the scenario's own primary metrics.
    pub primary: Option<Vec<String>>,
    /// Equivalence margins by metric, as a share of the baseline (0.02 is 2 %). Metrics not listed have their default
    /// margins.
    pub margins: BTreeMap<String, f64>,
    /// The user's own program; `None` for other scenarios, and after [`ScenarioSpec::settle`] has converted it to
    /// parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<OwnProgram>,
    /// Duration of a trial as stated in the campaign, on the reference machine of
    /// [`Arena::here`](pagetide_arena::Arena::here); `None` if not stated. Used for forecasts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Nanos>,
}

impl ScenarioSpec {
    /// Converts the user's own program to parameters of the scenario. `place` has the paths of its files in the root
    /// (the file system that the guest mounts). Fails if an environment variable has no value.
    pub fn settle(&mut self, place: &ProgramPlace) -> Result<(), NoValue> {
        if let Some(program) = self.program.take() {
            let params = program.spec.params(place)?.into_iter();
            self.params
                .extend(params.map(|(name, value)| (name, vec![value])));
        }
        Ok(())
    }

    /// Returns the name of the first metric in `primary`; `default` if the user named no primary metrics.
    pub(crate) fn deciding_metric<'a>(&'a self, default: &'a str) -> &'a str {
        let own = self.primary.iter().flatten().next();
        own.map_or(default, String::as_str)
    }
}

/// Number of trials of a campaign, and the rule for ending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// Seed of the first block; later blocks use the seeds after it.
    pub first_seed: u64,
    /// Number of timed trials of each variant and cell in a block, which together are one sampling unit. More than one
    /// is useful only if the arena has noise.
    pub repetitions: u32,
    /// When sampling ends.
    pub until: Until,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            first_seed: 1,
            repetitions: 1,
            until: Until::Enough(DEFAULT_SEEDS),
        }
    }
}

/// When sampling ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Sampling ends after this number of blocks: the number of seeds (or sampling units) for each variant and cell.
    Blocks(u32),
    /// Sampling ends after this default number of blocks, which [`Campaign::enough`] raises to the number that the
    /// primary metrics need.
    Enough(u32),
    /// Sampling ends when every primary metric is decided, or after `cap` blocks.
    Sure {
        /// Maximum number of blocks.
        cap: u32,
        /// Numbers of blocks after which the results are judged (interim analyses), ascending up to the cap. If empty,
        /// they are derived from the number of primary metrics.
        looks: Vec<u32>,
    },
}

impl Until {
    /// Returns the maximum number of blocks before sampling ends.
    pub fn cap(&self) -> u32 {
        match self {
            Self::Blocks(blocks) | Self::Enough(blocks) => *blocks,
            Self::Sure { cap, .. } => *cap,
        }
    }
}

/// Returns the minimum number of seeds with which the clearest possible result decides each of `primaries` metrics,
/// which share one error rate. At most 64.
pub fn seeds_for(primaries: usize) -> u32 {
    (1..=64)
        .find(|&seeds| smallest_p(u64::from(seeds)) * primaries.max(1) as f64 <= ALPHA)
        .unwrap_or(64)
}

/// Returns the numbers of blocks for `looks` interim analyses, evenly spaced up to `cap`. Each is at least the smallest
/// number that can decide anything (`cap` if that is less); equal numbers are given once.
pub fn even_looks(cap: u32, looks: u32) -> Vec<u32> {
    let looks = looks.clamp(1, cap.max(1));
    let mut sizes: Vec<u32> = (1..=looks)
        .map(|look| (cap * look).div_ceil(looks).max(MIN_SEEDS.min(cap)))
        .collect();
    sizes.dedup();
    sizes
}

/// Selects the trials that also run an observed pass (with tracepoints and series) or a profiled pass. The times of
/// these passes are never judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observe {
    /// No trial.
    #[default]
    None,
    /// The trials with the first seeds, as many as this number, for each variant and cell.
    Seeds(u32),
    /// Every trial.
    All,
}

impl Observe {
    /// Default for comparisons: trials with the first three seeds are observed. One changed page can change a whole
    /// trajectory, so several seeds are needed to explain a difference.
    pub const FEW: Self = Self::Seeds(3);

    /// Each word that a campaign file or the command line accepts, with the value it stands for. A number of seeds is
    /// accepted instead of a word.
    pub const WORDS: [(&str, Self); 3] = [
        ("none", Self::None),
        ("first", Self::Seeds(1)),
        ("all", Self::All),
    ];

    /// Default selection of observed trials: [`Self::FEW`] if several variants are compared, so that differences can be
    /// explained; none for a single variant.
    pub const fn default_for(variants: usize) -> Self {
        if variants > 1 { Self::FEW } else { Self::None }
    }

    /// True if this selects no trial.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Returns the number of selected blocks in a campaign of `blocks` blocks.
    pub const fn of(self, blocks: u32) -> u32 {
        match self {
            Self::None => 0,
            Self::Seeds(seeds) if seeds < blocks => seeds,
            Self::Seeds(_) | Self::All => blocks,
        }
    }

    /// True if trials of this block (counted from 0) are selected.
    pub const fn includes(self, block: u32) -> bool {
        match self {
            Self::None => false,
            Self::Seeds(seeds) => block < seeds,
            Self::All => true,
        }
    }
}

impl FromStr for Observe {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((_, observe)) = Self::WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(*observe);
        }
        match text.parse() {
            Ok(seeds) if seeds > 0 => Ok(Self::Seeds(seeds)),
            _ => Err("give a number of seeds, none, first or all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_number_of_seeds_decides_rows_on_which_all_agree() {
        let clearest = smallest_p(u64::from(DEFAULT_SEEDS));
        // One of the six metrics judged together with the primary metrics is this clear.
        let adjusted =
            pagetide_verdict::adjust::benjamini_hochberg(&[clearest, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert!(adjusted[0] <= ALPHA, "{adjusted:?}");
        assert_eq!(seeds_for(6), DEFAULT_SEEDS);
    }

    #[test]
    fn looks_are_even_ascend_and_end_at_the_cap() {
        assert_eq!(even_looks(40, 4), [10, 20, 30, 40]);
        assert_eq!(even_looks(20, 5), [6, 8, 12, 16, 20]);
        assert_eq!(even_looks(3, 4), [3]);
        assert_eq!(even_looks(1, 9), [1]);
    }
}
