//! Options that override a campaign, whatever the campaign was made from.

use pagetide_quantity::Bytes;
use pagetide_record::{
    ArenaKind, CpusSpec, FileSystem, FilesOn, FilesSpec, MemorySpec, NodesSpec, SwapSpec, TraceRing,
};

use super::error::RequestError;
use crate::campaign::{Campaign, DEFAULT_CAP, Observe, Until};
use crate::file::Vocabulary;
use crate::host::RUNNING;
use crate::program::PROGRAM;

/// Default memory of the machine, as a multiple of the workload's memory limit.
const ROOMY: u64 = 4;

/// Options that override a campaign. They are also allowed together with a campaign file.
#[derive(Clone, Debug, Default)]
pub struct Adjustment {
    /// Memory sizes of every scenario; empty to keep those of the campaign.
    pub memory: Vec<MemorySpec>,
    /// Memory sizes at which the effect of a variant is compared. They do not influence the campaign's name.
    pub sizes: Vec<MemorySpec>,
    /// NUMA nodes of every scenario's machine; `None` to keep the campaign's nodes.
    pub nodes: Option<NodesSpec>,
    /// Memory limits (`memory.max`) of a cgroup around the workload of every scenario; empty to keep the campaign's
    /// limits.
    pub limit: Vec<Bytes>,
    /// Kind of arena; `None` to keep the campaign's arena.
    pub arena: Option<ArenaKind>,
    /// Kinds of swap of every scenario; empty to keep those of the campaign.
    pub swap: Vec<SwapSpec>,
    /// Size of the swap device; `None` to keep the campaign's size.
    pub swap_size: Option<Bytes>,
    /// The disk that holds files; `None` to keep the campaign's disk.
    pub files_on: Option<FilesOn>,
    /// CPUs of the machines of every scenario; empty to keep the campaign's CPUs.
    pub cpus: Vec<CpusSpec>,
    /// The file system for files; `None` to keep the campaign's file system.
    pub fs: Option<FileSystem>,
    /// Number of seeds for each variant, or their maximum number if `until_sure`; `None` for the campaign's own number.
    pub seeds: Option<u32>,
    /// Seed of the first block; `None` to keep the campaign's seed.
    pub first_seed: Option<u64>,
    /// True if sampling continues until every primary metric is decided.
    pub until_sure: bool,
    /// Which trials also run an observed pass; `None` to keep the campaign's choice.
    pub observe: Option<Observe>,
    /// Which trials also run a profiled pass; `None` to keep the campaign's choice.
    pub profile: Option<Observe>,
    /// True if profiled trials also record references to pages. Without other profiled trials, those of the first seed
    /// are profiled.
    pub references: bool,
    /// Size of the ring buffer for events of observed trials; `None` to keep the campaign's size.
    pub trace_ring: Option<TraceRing>,
    /// Unrequested differences between variants that the user accepts.
    pub accept: Vec<String>,
}

impl Adjustment {
    /// Returns `spec` with the disk and the file system of these options. A part whose option was not given is kept.
    pub(super) fn files(&self, spec: FilesSpec) -> FilesSpec {
        spec.with(self.fs, self.files_on)
    }

    /// Moves the campaign to the requested arena and adds the arena to its name; does nothing if it has this arena
    /// already. In the host arena, the running kernel replaces the variants' kernel.
    ///
    /// # Errors
    ///
    /// If the variants have different kernels or boot arguments and the arena is the host arena.
    pub(super) fn move_to_arena(&self, campaign: &mut Campaign) -> Result<(), RequestError> {
        let Some(arena) = self.arena.filter(|arena| *arena != campaign.arena) else {
            return Ok(());
        };
        if arena == ArenaKind::Host {
            let first = campaign.variants.first().cloned().unwrap_or_default();
            for variant in &mut campaign.variants {
                if variant.kernel != first.kernel || variant.boot != first.boot {
                    return Err(RequestError::OneKernel {
                        variant: variant.name.clone(),
                    });
                }
                variant.kernel = RUNNING.to_owned();
            }
        }
        campaign.arena = arena;
        campaign.name = format!("{}-{arena}", campaign.name);
        Ok(())
    }

    /// Applies the options to the campaign. Options that were not given keep the campaign's values. A scenario without
    /// a memory size gets its default, or four times the largest memory limit if that is more.
    pub(super) fn apply(&self, campaign: &mut Campaign, vocabulary: &Vocabulary) {
        if let Some(first) = self.first_seed {
            campaign.sampling.first_seed = first;
        }
        if self.until_sure {
            campaign.sampling.until = Until::Sure {
                cap: self.seeds.unwrap_or(DEFAULT_CAP),
                looks: Vec::new(),
            };
        } else if let Some(seeds) = self.seeds {
            campaign.sampling.until = Until::Blocks(seeds);
        }
        if let Some(observe) = self.observe {
            campaign.observe = observe;
        }
        if let Some(profile) = self.profile {
            campaign.profile = profile;
        }
        if self.references {
            campaign.record_references();
        }
        campaign.trace_ring = self.trace_ring.unwrap_or(campaign.trace_ring);
        campaign.accept.extend(self.accept.iter().cloned());
        for scenario in &mut campaign.scenarios {
            for memory in [&self.memory, &self.sizes] {
                if !memory.is_empty() {
                    scenario.memory.clone_from(memory);
                }
            }
            if let Some(nodes) = &self.nodes {
                scenario.nodes = nodes.clone();
                if let (Some(sum), true) =
                    (nodes.sum(), self.memory.is_empty() && self.sizes.is_empty())
                {
                    scenario.memory = vec![MemorySpec::Free(sum)];
                }
            }
            if !self.limit.is_empty() && scenario.name != PROGRAM {
                scenario.limit.clone_from(&self.limit);
            }
            if !self.swap.is_empty() {
                scenario.swap.clone_from(&self.swap);
            }
            if !self.cpus.is_empty() {
                scenario.cpus.clone_from(&self.cpus);
            }
            scenario.swap_size = self.swap_size.or(scenario.swap_size);
            scenario.files_on = self.files(scenario.files_on);
            if scenario.memory.is_empty()
                && let Some(words) = vocabulary.scenario(&scenario.name)
            {
                // The machine must have more memory than the limit.
                let largest = scenario
                    .limit
                    .iter()
                    .map(|limit| limit.0.saturating_mul(ROOMY))
                    .max();
                let memory = words.default_memory.0.max(largest.unwrap_or(0));
                scenario.memory = vec![MemorySpec::Free(Bytes(memory))];
            }
        }
    }
}
