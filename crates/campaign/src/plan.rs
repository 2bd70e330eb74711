//! The plan: every trial of a campaign, in the order in which they run. The plan is generated lazily, cell by cell and
//! block by block, so a hundred thousand seeds take no more memory than one.
//!
//! Trials come in blocks. A block has a timed trial of every variant in every cell, once for each repetition, and then
//! the observed and profiled passes of its seed, if any. Cells come in random order, and so do the variants within a
//! cell. Variants of a cell run next to each other, so that both trials of a pair are equally affected by drift. The
//! order of a block depends only on the campaign's seed and the block's number, so asking for more seeds only appends
//! blocks.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::subject::memory_label;
use pagetide_record::{CpusSpec, FilesSpec, MemorySpec, NodesSpec, Pass, SwapSpec, TraceRing};
use pagetide_reference::Rng;
use pagetide_store::MAX_VARIANTS;
use serde::{Deserialize, Serialize};

use crate::campaign::{Campaign, ScenarioSpec};
use crate::program::WORKLOAD;
use pagetide_arena::Trial;

/// Maximum number of machines of a campaign: one for each combination of memory size, memory limit, kind of swap and
/// CPUs of a scenario, times the number of different swaps of the variants. Each may need a guest of its own.
pub const MAX_MACHINES: usize = 1_000;
/// Maximum number of cells of a campaign. Each cell is prepared before the first trial runs.
pub const MAX_CELLS: usize = 1_000_000;

/// The passes of a block, in the order in which they run. Timed passes come first, so that no other pass runs between
/// the two trials of a timed pair.
pub(crate) const PASSES: [Pass; 3] = [Pass::Timed, Pass::Observed, Pass::Profiled];

/// Conditions that are the same on both sides of a comparison: one scenario with one value of each parameter, of memory
/// and of swap. A variant's own swap replaces that of the cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the scenario.
    pub scenario: String,
    /// True if the scenario runs as the paper wrote it, including the original's faults.
    pub as_written: bool,
    /// Parameters that the user set, with their values.
    pub params: BTreeMap<String, String>,
    /// Memory available to the workload.
    pub memory: MemorySpec,
    /// NUMA nodes of the machine; the default value is a machine with one node.
    #[serde(default, skip_serializing_if = "NodesSpec::is_default")]
    pub nodes: NodesSpec,
    /// Memory limit (`memory.max`) of a cgroup around the whole workload; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Bytes>,
    /// Kind of swap.
    pub swap: SwapSpec,
    /// Size of the swap device; `None` for the arena's default.
    pub swap_size: Option<Bytes>,
    /// Disk and file system for the scenario's files, if it has any.
    #[serde(default, skip_serializing_if = "FilesSpec::is_default")]
    pub files_on: FilesSpec,
    /// CPUs of the machine.
    #[serde(default, skip_serializing_if = "CpusSpec::is_default")]
    pub cpus: CpusSpec,
    /// Names of the primary metrics that the user chose; `None` for the scenario's own primary metrics.
    pub primary: Option<Vec<String>>,
    /// Equivalence margins by metric, as a share of the baseline (0.02 is 2 %).
    pub margins: BTreeMap<String, f64>,
    /// Duration of a trial as stated in the campaign; `None` if not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Nanos>,
    /// True if variants have their own kinds of swap, so that the kind of swap is not part of the cell's label.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compares_kinds: bool,
}

/// Maximum number of characters of a parameter's value in a label. A command may have thousands.
const VALUE_CHARS: usize = 40;
/// Number of characters kept at the end of a shortened value.
const TAIL_CHARS: usize = 12;

/// Returns the value, shortened in its middle if it has more than [`VALUE_CHARS`] characters.
fn cut(value: &str) -> String {
    let count = value.chars().count();
    if count <= VALUE_CHARS {
        return value.to_owned();
    }
    let chars = value.chars();
    let head = chars.clone().take(VALUE_CHARS - TAIL_CHARS - 1);
    let tail = chars.skip(count - TAIL_CHARS);
    head.chain(['…']).chain(tail).collect()
}

/// Returns the first 16 hex digits of a hash as a number, sufficient to distinguish a million cells.
pub(crate) fn shortened(hash: &str) -> u64 {
    u64::from_str_radix(hash.get(..16).unwrap_or("0"), 16).unwrap_or(0)
}

impl Cell {
    /// Returns a short label of the cell for display: scenario, given parameters, memory, and swap unless the variants
    /// have their own kinds. Memory limit, NUMA nodes, the disk and file system for files, and CPUs are added if they
    /// are not the default.
    pub fn label(&self) -> String {
        let written = if self.as_written { " as written" } else { "" };
        let mut params = String::new();
        let case = self.params.get("case").filter(|case| !case.is_empty());
        if let Some(case) = case {
            let _ = write!(params, " {case}");
        }
        for (name, value) in &self.params {
            // For a described workload, the label has the workload's name instead of its text.
            if case.is_some() && (name == "case" || name == WORKLOAD) {
                continue;
            }
            let _ = write!(params, " {name}={}", cut(value));
        }
        let swap = if self.compares_kinds {
            String::new()
        } else {
            format!(" · {}", self.swap)
        };
        format!(
            "{}{written}{params} · {}{}{swap}{}{}",
            self.scenario,
            memory_label(self.memory, self.limit),
            self.nodes.beside_memory(),
            self.files_on.beside_swap(),
            self.cpus.in_label()
        )
    }
}

/// A trial and its position in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTrial {
    /// Index of the trial's cell among [`Campaign::cells`].
    pub cell: usize,
    /// Index of the trial's variant in the campaign.
    pub variant: usize,
    /// Number of the trial's block, counted from 0; also its sampling unit within the cell.
    pub block: u32,
    /// What runs: scenario, parameters, variant and seed.
    pub trial: Trial,
}

impl ScenarioSpec {
    /// Returns the number of cells of the scenario: the product of the lengths of its lists. An empty list of sizes,
    /// limits, kinds of swap or CPUs counts as one value.
    pub fn cell_count(&self) -> usize {
        self.params
            .values()
            .map(Vec::len)
            .chain(self.machines())
            .fold(1, usize::saturating_mul)
    }

    /// Returns the numbers of memory sizes, memory limits, kinds of swap and CPU configurations, each at least 1.
    fn machines(&self) -> [usize; 4] {
        let lengths = [
            self.memory.len(),
            self.limit.len(),
            self.swap.len(),
            self.cpus.len(),
        ];
        lengths.map(|count| count.max(1))
    }

    /// Returns the number of machines on which the scenario runs: the product of [`Self::machines`].
    fn machine_count(&self) -> usize {
        self.machines().into_iter().fold(1, usize::saturating_mul)
    }

    /// Returns the cells of the scenario, generated lazily: all combinations of its lists. The last parameter changes
    /// fastest.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        (0..self.cell_count()).map(|number| self.cell(number))
    }

    /// Returns the cell with this number. The digits of the number, in a mixed radix of the lists' lengths, are the
    /// indices into the lists.
    fn cell(&self, number: usize) -> Cell {
        let mut rest = number;
        let mut digit = |base: usize| {
            let digit = rest % base.max(1);
            rest /= base.max(1);
            digit
        };
        let params = self
            .params
            .iter()
            .rev()
            .filter_map(|(name, values)| {
                Some((name.clone(), values.get(digit(values.len()))?.clone()))
            })
            .collect();
        let cpus = digit(self.cpus.len());
        let swap = digit(self.swap.len());
        let memory = digit(self.memory.len());
        let limit = digit(self.limit.len());
        Cell {
            scenario: self.name.clone(),
            as_written: self.as_written,
            params,
            memory: self.memory.get(memory).copied().unwrap_or_default(),
            nodes: self.nodes.clone(),
            limit: self.limit.get(limit).copied(),
            swap: self.swap.get(swap).copied().unwrap_or_default(),
            swap_size: self.swap_size,
            files_on: self.files_on,
            cpus: self.cpus.get(cpus).copied().unwrap_or_default(),
            primary: self.primary.clone(),
            margins: self.margins.clone(),
            takes: self.takes,
            compares_kinds: false,
        }
    }
}

impl Campaign {
    /// Returns the cells of the campaign, generated lazily, scenario by scenario.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        let compares_kinds = self.compares_kinds();
        let all = self.scenarios.iter().flat_map(ScenarioSpec::cells);
        all.map(move |cell| Cell {
            compares_kinds,
            ..cell
        })
    }

    /// Returns the number of trials of one pass in one cell, under all variants and up to the last possible block.
    pub fn trials_of_cell(&self, pass: Pass) -> u64 {
        let cap = self.sampling.until.cap();
        let of_each = match pass {
            Pass::Timed => u64::from(cap) * u64::from(self.sampling.repetitions.max(1)),
            Pass::Observed => u64::from(self.observe.of(cap)),
            Pass::Profiled => u64::from(self.profile.of(cap)),
        };
        of_each * self.variants.len() as u64
    }

    /// Returns the number of cells of all scenarios together.
    pub fn cell_count(&self) -> usize {
        let cells = self.scenarios.iter().map(ScenarioSpec::cell_count);
        cells.fold(0, usize::saturating_add)
    }

    /// Returns the first limit that the plan exceeds: the kind of item, the number of items, and the limit. `None` if
    /// the plan is within all limits.
    pub(crate) fn excess(&self) -> Option<(&'static str, usize, usize)> {
        let machines = self.scenarios.iter().map(ScenarioSpec::machine_count);
        let machines = machines
            .fold(0, usize::saturating_add)
            .saturating_mul(self.swaps_of_variants());
        [
            ("variants", self.variants.len(), MAX_VARIANTS),
            (
                "machines of different memory or swap",
                machines,
                MAX_MACHINES,
            ),
            ("cells", self.cell_count(), MAX_CELLS),
        ]
        .into_iter()
        .find(|(_, count, most)| count > most)
    }

    /// Returns the maximum number of trials of all cells, including observed and profiled passes.
    pub fn trial_count(&self) -> u64 {
        let of_cell = PASSES.map(|pass| self.trials_of_cell(pass));
        (self.cell_count() as u64).saturating_mul(of_cell.iter().sum())
    }

    /// Returns the trial of a cell under a variant, for a block number and a repetition.
    pub(crate) fn trial(
        &self,
        cell: &Cell,
        variant: usize,
        (block, repetition): (u32, u32),
        pass: Pass,
    ) -> Trial {
        let own = &self.variants[variant];
        Trial {
            scenario: cell.scenario.clone(),
            as_written: cell.as_written,
            params: cell.params.clone(),
            seed: self.seed_of(block, repetition),
            variant: own.clone(),
            memory: cell.memory,
            nodes: cell.nodes.clone(),
            limit: cell.limit,
            swap: own.swap.unwrap_or(cell.swap),
            swap_size: own.swap_size.or(cell.swap_size),
            files_on: cell.files_on,
            cpus: cell.cpus,
            pass,
            trace_ring: self.ring_of(pass),
            references: self.references && pass == Pass::Profiled,
            annotate: None,
            unit: block,
            repetition,
            takes: cell.takes,
        }
    }

    /// Returns the size of the ring buffer for events in trials of a pass. Only observed passes use the campaign's
    /// size; other passes have the default size.
    pub(crate) fn ring_of(&self, pass: Pass) -> TraceRing {
        match pass {
            Pass::Timed | Pass::Profiled => TraceRing::default(),
            Pass::Observed => self.trace_ring,
        }
    }

    /// Returns the seed of a repetition in a block. All variants have the same seed, so that pairs can be found by seed
    /// alone.
    pub(crate) fn seed_of(&self, block: u32, repetition: u32) -> u64 {
        let repetitions = u64::from(self.sampling.repetitions.max(1));
        self.sampling
            .first_seed
            .wrapping_add(u64::from(block) * repetitions + u64::from(repetition))
    }

    /// Returns the trials of some blocks in the order in which they run, generated lazily.
    pub fn trials<'a>(
        &'a self,
        cells: &'a [Cell],
        blocks: Range<u32>,
    ) -> impl Iterator<Item = PlannedTrial> + 'a {
        blocks.flat_map(move |block| {
            let order = Arc::new(self.order(cells.len(), block));
            let runs = move |pass: &Pass| match pass {
                Pass::Timed => true,
                Pass::Observed => self.observe.includes(block),
                Pass::Profiled => self.profile.includes(block),
            };
            PASSES.into_iter().filter(runs).flat_map(move |pass| {
                let order = Arc::clone(&order);
                let repetitions = match pass {
                    Pass::Timed => self.sampling.repetitions.max(1),
                    Pass::Observed | Pass::Profiled => 1,
                };
                let each = repetitions as usize;
                (0..order.len() * each).map(move |place| {
                    let (cell, variant) = order[place / each];
                    let repetition = u32::try_from(place % each).unwrap_or(0);
                    self.planned(cells, cell, variant, (block, repetition), pass)
                })
            })
        })
    }

    /// Returns the trials of a block in random order, each as index of the cell and index of the variant. Variants of a
    /// cell are adjacent.
    fn order(&self, cells: usize, block: u32) -> Vec<(usize, usize)> {
        let mut rng = Rng::stream(self.seed, &format!("block {block}"));
        let mut order: Vec<usize> = (0..cells).collect();
        rng.shuffle(&mut order);
        let mut pairs = Vec::with_capacity(cells * self.variants.len());
        for cell in order {
            let mut variants: Vec<usize> = (0..self.variants.len()).collect();
            rng.shuffle(&mut variants);
            pairs.extend(variants.into_iter().map(|variant| (cell, variant)));
        }
        pairs
    }

    pub(crate) fn planned(
        &self,
        cells: &[Cell],
        cell: usize,
        variant: usize,
        place: (u32, u32),
        pass: Pass,
    ) -> PlannedTrial {
        PlannedTrial {
            cell,
            variant,
            block: place.0,
            trial: self.trial(&cells[cell], variant, place, pass),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::{Observe, Sampling, Until};
    use pagetide_arena::VariantSpec;
    use pagetide_record::ArenaKind;

    fn campaign(seeds: u32) -> Campaign {
        let variant = |name: &str| VariantSpec {
            name: name.into(),
            ..VariantSpec::default()
        };
        let list = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect();
        Campaign {
            name: "test".into(),
            arena: ArenaKind::Exact,
            seed: 7,
            variants: vec![variant("a"), variant("b"), variant("c")],
            scenarios: vec![ScenarioSpec {
                name: "linear".into(),
                params: [
                    ("pages".to_owned(), list(&["10", "20"])),
                    ("refs".to_owned(), list(&["5", "6", "7"])),
                ]
                .into(),
                swap: vec!["zram".parse().unwrap(), "ssd".parse().unwrap()],
                ..ScenarioSpec::default()
            }],
            sampling: Sampling {
                until: Until::Blocks(seeds),
                ..Sampling::default()
            },
            observe: Observe::None,
            profile: Observe::None,
            references: false,
            trace_ring: TraceRing::default(),
            accept: Vec::new(),
        }
    }

    #[test]
    fn only_profiled_trials_record_references() {
        let campaign = Campaign {
            profile: Observe::Seeds(1),
            references: true,
            ..campaign(2)
        };
        for planned in trials(&campaign) {
            let is_profiled = planned.trial.pass == Pass::Profiled;
            assert_eq!(planned.trial.references, is_profiled);
        }
    }

    fn trials(campaign: &Campaign) -> Vec<PlannedTrial> {
        let cells: Vec<Cell> = campaign.cells().collect();
        let trials: Vec<_> = campaign
            .trials(&cells, 0..campaign.sampling.until.cap())
            .collect();
        assert_eq!(campaign.trial_count(), trials.len() as u64);
        trials
    }

    #[test]
    fn lists_make_a_matrix_of_distinct_cells() {
        let cells: Vec<Cell> = campaign(1).cells().collect();
        assert_eq!(cells.len(), 12);
        assert_eq!(campaign(1).scenarios[0].cell_count(), 12);
        for (i, a) in cells.iter().enumerate() {
            assert!(cells[i + 1..].iter().all(|b| b != a), "{} twice", a.label());
        }
        assert_eq!(cells[0].label(), "linear pages=10 refs=5 · 64M · zram");
        assert_eq!(cells[1].label(), "linear pages=10 refs=6 · 64M · zram");
        assert_eq!(cells[11].label(), "linear pages=20 refs=7 · 64M · ssd:80us");
    }

    #[test]
    fn a_long_command_hides_neither_its_limit_nor_its_file_system() {
        let value = |text: &str| text.to_owned();
        let cell = Cell {
            scenario: "program".into(),
            params: [
                (
                    "command".to_owned(),
                    format!("sh -c '{}; wait'", "dd ".repeat(99)),
                ),
                ("limit".to_owned(), value("33554432")),
            ]
            .into(),
            files_on: "xfs".parse().unwrap(),
            ..Cell::default()
        };
        let label = cell.label();
        assert!(
            label.ends_with(" limit=33554432 · 64M · zram · files on xfs"),
            "{label}"
        );
        assert!(
            label.starts_with("program command=sh -c 'dd dd ") && label.contains("…d dd ; wait'"),
            "{label}"
        );
        assert!(label.chars().count() < 120, "{label}");
    }

    #[test]
    fn every_block_has_every_variant_once_in_every_cell_and_pairs_run_side_by_side() {
        let plan = trials(&campaign(5));
        assert_eq!(plan.len(), 5 * 12 * 3);
        for (number, block) in (0..).zip(plan.chunks(36)) {
            assert!(block.iter().all(|t| t.block == number));
            let mut seen: Vec<_> = block.iter().map(|t| (t.cell, t.variant)).collect();
            for group in block.chunks(3) {
                assert!(group.iter().all(|t| t.cell == group[0].cell));
                assert!(group.iter().all(|t| t.trial.seed == group[0].trial.seed));
            }
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 36);
        }
    }

    #[test]
    fn variants_lead_about_equally_often_and_blocks_differ_in_order() {
        let plan = trials(&campaign(50));
        let mut leads = [0_u32; 3];
        for group in plan.chunks(3) {
            leads[group[0].variant] += 1;
        }
        // There are 600 groups. 200 are expected for each, with a standard deviation of 11.5.
        assert!(leads.iter().all(|l| (150..250).contains(l)), "{leads:?}");
        let order = |n: usize| -> Vec<_> {
            plan[n * 36..(n + 1) * 36]
                .iter()
                .map(|t| (t.cell, t.variant))
                .collect()
        };
        assert_ne!(order(0), order(1));
    }

    #[test]
    fn more_seeds_only_append() {
        let (few, many) = (trials(&campaign(3)), trials(&campaign(9)));
        assert_eq!(few[..], many[..few.len()]);
    }

    #[test]
    fn repetitions_share_their_unit_and_have_seeds_of_their_own() {
        let mut c = campaign(2);
        c.sampling.repetitions = 4;
        let plan = trials(&c);
        assert_eq!(plan.len(), 2 * 12 * 3 * 4);
        let mut of_one: Vec<_> = plan
            .iter()
            .filter(|t| t.cell == 0 && t.variant == 0)
            .map(|t| (t.trial.seed, t.trial.unit, t.trial.repetition))
            .collect();
        of_one.sort_unstable();
        let expected: Vec<_> = (0..8).map(|n| (u64::from(n) + 1, n / 4, n % 4)).collect();
        assert_eq!(of_one, expected);
    }

    #[test]
    fn observed_passes_follow_the_timed_ones_of_their_block() {
        let mut c = campaign(2);
        c.observe = Observe::Seeds(1);
        let plan = trials(&c);
        assert_eq!(plan.len(), 36 + 36 + 36);
        assert!(plan[..36].iter().all(|t| t.trial.pass == Pass::Timed));
        assert!(plan[36..72].iter().all(|t| t.trial.pass == Pass::Observed));
        assert!(plan[72..].iter().all(|t| t.trial.pass == Pass::Timed));
    }
}
