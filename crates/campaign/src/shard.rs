//! Shards: parts of a campaign's trials that run in separate places.
//!
//! Each trial of a campaign is in exactly one shard. Which shard depends on the campaign alone, not on the machine, so
//! processes can run shards without communication. Trials that boot the same guest are adjacent, so that a shard boots
//! few guests. The work of a trial is assumed to be proportional to its memory.

use std::fmt;
use std::str::FromStr;

use pagetide_record::Pass;
use serde::Serialize;

use crate::campaign::Campaign;
use crate::plan::{Cell, PlannedTrial};

/// Maximum number of shards of a campaign.
pub const MAX_SHARDS: u32 = 100_000;

/// One of several parts of a campaign's trials, written `2/4`: the second of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shard {
    /// Number of the shard, counted from 1.
    pub number: u32,
    /// Number of shards.
    pub count: u32,
}

/// Error: a text is not a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no shard: give its number and the number of shards, such as 2/4 (at most {MAX_SHARDS})"
)]
pub struct NotAShard {
    text: String,
}

impl FromStr for Shard {
    type Err = NotAShard;

    fn from_str(text: &str) -> Result<Self, NotAShard> {
        let parsed = text
            .split_once('/')
            .and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
        match parsed {
            Some((number, count))
                if (1..=MAX_SHARDS).contains(&count) && (1..=count).contains(&number) =>
            {
                Ok(Self { number, count })
            }
            _ => Err(NotAShard {
                text: text.chars().take(40).collect(),
            }),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// All trials of a campaign in a fixed order, each with a length proportional to its work. A shard is a section of this
/// line.
pub(crate) struct Line {
    shard: Shard,
    /// Position at which each cell starts on the line; the last element is the total length.
    starts: Vec<u128>,
    /// Length of one sampling unit, for each cell. It is the cell's memory in bytes.
    lengths: Vec<u128>,
    /// Number of blocks that have a timed pass.
    blocks: u128,
    /// Number of blocks that have an observed pass.
    observed: u128,
    /// Number of sampling units of one variant in a cell, summed over all passes.
    units: u128,
}

impl Line {
    /// Computes the line of trials for a campaign with these cells.
    pub fn new(campaign: &Campaign, cells: &[Cell], shard: Shard) -> Self {
        let cap = campaign.sampling.until.cap();
        let observed = u128::from(campaign.observe.of(cap));
        let units = u128::from(cap) + observed + u128::from(campaign.profile.of(cap));
        let of_cell = units * campaign.variants.len() as u128;
        let lengths: Vec<u128> = cells
            .iter()
            .map(|cell| u128::from(cell.memory.bytes().0.max(1)))
            .collect();
        let mut starts = vec![0];
        let mut end = 0;
        for length in &lengths {
            end += length * of_cell;
            starts.push(end);
        }
        Self {
            shard,
            starts,
            lengths,
            blocks: u128::from(cap),
            observed,
            units,
        }
    }

    /// True if the trial belongs to the shard. All trials of one sampling unit and pass belong to the same shard.
    pub fn has(&self, planned: &PlannedTrial) -> bool {
        let length = self.lengths[planned.cell];
        let first = match planned.trial.pass {
            Pass::Timed => 0,
            Pass::Observed => self.blocks,
            Pass::Profiled => self.blocks + self.observed,
        };
        let unit = planned.variant as u128 * self.units + first + u128::from(planned.block);
        // This is twice the middle of the unit, so that it is an integer.
        let middle = 2 * (self.starts[planned.cell] + unit * length) + length;
        let end = self.starts.last().copied().unwrap_or(0).max(1);
        let place = middle * u128::from(self.shard.count) / (2 * end);
        place == u128::from(self.shard.number - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::{Observe, Sampling, ScenarioSpec, Until};
    use pagetide_arena::VariantSpec;

    fn campaign(variants: usize, seeds: u32, memory: &[&str]) -> Campaign {
        Campaign {
            name: "test".into(),
            arena: pagetide_record::ArenaKind::Exact,
            seed: 7,
            variants: (0..variants)
                .map(|n| VariantSpec {
                    name: n.to_string(),
                    ..VariantSpec::default()
                })
                .collect(),
            scenarios: vec![ScenarioSpec {
                name: "linear".into(),
                memory: memory.iter().map(|size| size.parse().unwrap()).collect(),
                ..ScenarioSpec::default()
            }],
            sampling: Sampling {
                until: Until::Blocks(seeds),
                ..Sampling::default()
            },
            observe: Observe::Seeds(2),
            profile: Observe::None,
            references: false,
            trace_ring: pagetide_record::TraceRing::default(),
            accept: Vec::new(),
        }
    }

    fn shares(campaign: &Campaign, count: u32) -> Vec<Vec<PlannedTrial>> {
        let cells: Vec<Cell> = campaign.cells().collect();
        let blocks = 0..campaign.sampling.until.cap();
        (1..=count)
            .map(|number| {
                let line = Line::new(campaign, &cells, Shard { number, count });
                let trials = campaign.trials(&cells, blocks.clone());
                trials.filter(|trial| line.has(trial)).collect()
            })
            .collect()
    }

    #[test]
    fn each_trial_is_in_one_shard_whatever_their_number() {
        for (variants, seeds, memory) in [
            (1, 1, &["16M"][..]),
            (2, 8, &["16M", "64M", "1G"]),
            (3, 5, &["24M", "32M"]),
        ] {
            let campaign = campaign(variants, seeds, memory);
            let cells: Vec<Cell> = campaign.cells().collect();
            let all: Vec<_> = campaign.trials(&cells, 0..seeds).collect();
            for count in [1, 2, 3, 7, 64, 1000] {
                let shares = shares(&campaign, count);
                let sum: usize = shares.iter().map(Vec::len).sum();
                assert_eq!(sum, all.len());
                for trial in &all {
                    let with = shares.iter().filter(|share| share.contains(trial));
                    assert_eq!(with.count(), 1);
                }
            }
        }
    }

    #[test]
    fn shards_of_equal_trials_are_of_equal_size_and_boot_few_guests() {
        let campaign = campaign(4, 14, &["64M"]);
        for share in shares(&campaign, 4) {
            assert_eq!(share.len(), 16);
            let mut variants: Vec<usize> = share.iter().map(|trial| trial.variant).collect();
            variants.sort_unstable();
            variants.dedup();
            assert_eq!(variants.len(), 1);
        }
    }

    #[test]
    fn a_shard_has_a_number_up_to_the_count() {
        assert_eq!(
            "2/4".parse(),
            Ok(Shard {
                number: 2,
                count: 4
            })
        );
        assert_eq!("4/4".parse::<Shard>().unwrap().to_string(), "4/4");
        for wrong in [
            "",
            "2",
            "0/4",
            "5/4",
            "1/0",
            "-1/4",
            "1/4/2",
            "a/b",
            "1/4294967296",
            "1/100001",
        ] {
            let error = wrong.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains("such as 2/4"), "{error}");
        }
    }
}
