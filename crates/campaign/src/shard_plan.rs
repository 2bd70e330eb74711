//! The plan of a shard: its trials, and the kernels and files that they need.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use pagetide_arena::Arena;
use serde::Serialize;

use crate::campaign::Campaign;
use crate::plan::Cell;
use crate::run::{RunError, check, check_shards, prepared};
use crate::shard::{Line, Shard};

/// The trials of a shard, and what they need from the cache of another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardPlan {
    /// The shard.
    pub shard: Shard,
    /// Number of trials in the shard.
    pub trials: u64,
    /// Number of guests that these trials need and that the cache does not have.
    pub guests: usize,
    /// Release of each kernel that these trials need, by the kernel's digest in hex.
    pub kernels: BTreeMap<String, String>,
    /// Digests of the file systems of users' programs that these trials need, in hex.
    pub roots: BTreeSet<String>,
}

impl ShardPlan {
    /// Describes the plan for the user.
    pub fn text(&self) -> String {
        let mut text = format!(
            "shard {} has {} trials, and boots {} guests that the cache does not have\n",
            self.shard, self.trials, self.guests
        );
        for (digest, release) in &self.kernels {
            let _ = writeln!(text, "kernel {release} {digest}");
        }
        for digest in &self.roots {
            let _ = writeln!(text, "root {digest}");
        }
        text
    }
}

/// Plans a shard. Runs no trial. Fails if the arena refuses a trial, or if the campaign has no fixed number of trials.
pub fn plan_shard(
    campaign: &Campaign,
    arena: &dyn Arena,
    shard: Shard,
) -> Result<ShardPlan, RunError> {
    check(campaign, arena)?;
    check_shards(campaign)?;
    let cells: Vec<Cell> = campaign.cells().collect();
    let line = Line::new(campaign, &cells, shard);
    let mut plan = ShardPlan {
        shard,
        trials: 0,
        guests: 0,
        kernels: BTreeMap::new(),
        roots: BTreeSet::new(),
    };
    let (mut seen, mut guests) = (HashSet::new(), HashSet::new());
    for planned in campaign.trials(&cells, 0..campaign.sampling.until.cap()) {
        if !line.has(&planned) {
            continue;
        }
        plan.trials += 1;
        if !seen.insert((planned.cell, planned.variant, planned.trial.pass)) {
            continue;
        }
        let prepared = prepared(arena, &planned.trial)?;
        let subject = prepared.subject();
        let kernel = &subject.variant.kernel;
        (plan.kernels).insert(kernel.digest.clone(), kernel.release.clone());
        let root = subject.params.get("root").filter(|root| !root.is_empty());
        plan.roots.extend(root.cloned());
        let guest = arena.guest(&prepared);
        guests.extend(
            guest
                .filter(|guest| guest.boot.0 > 0)
                .map(|guest| guest.key),
        );
    }
    plan.guests = guests.len();
    Ok(plan)
}
