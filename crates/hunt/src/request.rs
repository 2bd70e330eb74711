//! Requests for hunts, and running them in an arena: the search, and then the trials of each finding under all variants
//! and the other kernels of the request.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagetide_arena::VariantSpec;
use pagetide_campaign::{RunError, Site};
use pagetide_workload::Workload;
use serde::Serialize;

use crate::case::{Case, Shown};
use crate::executed::Reached;
use crate::extent::Extent;
use crate::goal::Goal;
use crate::hunt::{Account, Find, Plan, SEEDS, Say, Share, hunt};
use crate::trials::Trials;
use crate::workloads::Workloads;

/// A requested hunt.
#[derive(Clone, Debug)]
pub struct HuntRequest {
    /// Name of the hunt in the store.
    pub name: String,
    /// What to hunt for, and for how long.
    pub plan: Plan,
    /// The space of the hunt: everything that may vary.
    pub extent: Extent,
    /// The hunted variant.
    pub hunted: VariantSpec,
    /// The variant to compare with; `None` to look for failures of a single variant.
    pub other: Option<VariantSpec>,
    /// Variants with other kernels, under which each finding is tried too.
    pub also: Vec<VariantSpec>,
    /// True if all trials are profiled passes, so that the search also learns which functions ran.
    pub is_profiled: bool,
}

/// Result of a hunt.
#[derive(Clone, Debug, Serialize)]
pub struct Hunted {
    /// The goal.
    pub goal: Goal,
    /// True if two variants were compared.
    #[serde(skip)]
    pub is_compared: bool,
    /// Findings, and what the hunt tried.
    pub account: Account<Workload>,
    /// For each finding, its results under all variants, those of other kernels included; the hunted variant comes
    /// first. If the hunt was stopped, the last findings may have none.
    pub shown: Vec<Vec<Shown>>,
    /// What the measured trials of the hunted variant executed; `None` if they were not profiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
    /// Wall-clock time of the hunt.
    #[serde(skip)]
    pub wall: Duration,
}

impl HuntRequest {
    /// Runs the hunt in the site's arena. Trials that have a record are not run again, so an interrupted hunt goes on
    /// with the same request.
    pub fn run(&self, mut site: Site<'_>, say: &mut Say<'_, Workload>) -> Result<Hunted, RunError> {
        let _lock = site.store.lock_campaign(&self.name)?;
        let began = Instant::now();
        let goal = self.plan.goal;
        let space = Workloads::new(self.extent.clone());
        let (hunted, other) = (self.hunted.clone(), self.other.clone());
        let mut trials = Trials::new(&mut site, &self.name, goal, hunted, other);
        if self.is_profiled {
            trials.profile();
        }
        let mut account = hunt(&space, &self.plan, &mut trials, say)?;
        let mut shown = Vec::new();
        for index in 0..account.found.len() {
            let Some(of_one) = self.show(&account.found[index], &mut trials)? else {
                account.is_stopped = true;
                break;
            };
            shown.push(of_one);
        }
        Ok(Hunted {
            goal,
            is_compared: self.other.is_some(),
            account,
            shown,
            reached: trials.reached().cloned(),
            wall: began.elapsed(),
        })
    }

    /// Runs a case with fresh seeds under all variants. The hunted variant and the variant to compare with already have
    /// records. Returns `None` if stopped.
    fn show(
        &self,
        find: &Find<Workload>,
        trials: &mut Trials<'_, '_>,
    ) -> Result<Option<Vec<Shown>>, RunError> {
        let goal = self.plan.goal;
        let seeds = find.first_seed..find.first_seed + SEEDS;
        let compared = [&self.hunted].into_iter().chain(&self.other);
        let mut all = Vec::new();
        for variant in compared.chain(&self.also) {
            let Some(evidence) = trials.of_variant(&find.case, variant, seeds.clone())? else {
                return Ok(None);
            };
            // Only a goal that a single trial decides can be counted for each variant separately.
            let is_countable = goal.seeds() == 1 && !goal.needs_two();
            let share = is_countable.then(|| {
                let each = evidence.iter();
                Share::of(each.map(|one| goal.measure(std::slice::from_ref(one), &[])))
            });
            all.push(Shown {
                variant: variant.clone(),
                evidence,
                share,
            });
        }
        Ok(Some(all))
    }
}

impl Hunted {
    /// Returns the hunt with kernels as the user named them in `asked`, and not by the digests of what was built.
    #[must_use]
    pub fn named(&self, asked: &[VariantSpec]) -> Self {
        let mut named = self.clone();
        for shown in named.shown.iter_mut().flatten() {
            if let Some(asked) = asked.iter().find(|one| one.name == shown.variant.name) {
                shown.variant.kernel.clone_from(&asked.kernel);
            }
        }
        named
    }

    /// Returns the name of each finding that was tried under all variants. It is the name of its folder and its campaign.
    pub fn names(&self) -> Vec<String> {
        let count = self.account.found.len().min(self.shown.len());
        let name = |index: usize| format!("{}-{}", self.goal, index + 1);
        (0..count).map(name).collect()
    }

    /// Returns the content of the files of each finding with its name from `names`, which are those of [`Self::names`].
    pub fn cases<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = Case<'a>> {
        let found = names.iter().zip(&self.account.found).zip(&self.shown);
        found.map(|((name, find), shown)| Case {
            name,
            goal: self.goal,
            is_compared: self.is_compared,
            find,
            shown,
        })
    }

    /// Writes the files of each finding that was tried under all variants into a folder of its own below `folder`, with
    /// `compressed` as in [`Case::write`]. Returns the paths of the folders.
    pub fn write(
        &self,
        folder: &Path,
        compressed: &dyn Fn(&str) -> f64,
    ) -> io::Result<Vec<PathBuf>> {
        let mut folders = Vec::new();
        for case in self.cases(&self.names()) {
            let own = folder.join(case.name);
            case.write(&own, compressed)?;
            folders.push(own);
        }
        Ok(folders)
    }
}
