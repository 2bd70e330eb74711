//! Prepares and runs a search for the first bad version. It searches kernels of the cache, ordered by release, or
//! commits of a git tree.

use std::collections::BTreeSet;

use pagetide_arena::{Arena, VariantSpec};
use pagetide_campaign::bisect::{
    Audience, Bisect, BisectError, BisectOutcome, BisectRequest, History, Supplied, SupplyError,
    Version, bisect, predict, question,
};
use pagetide_campaign::{Campaign, Site};
use pagetide_kernel::{Freshness, Kernel, KernelRef};
use pagetide_source::{BuildStep, Commits, Recipe, SourceRef};
use pagetide_store::{Store, short};

use crate::building::{self, share_limit};
use crate::error::LabError;
use crate::lab::Lab;
use crate::{facts, vocabulary};

/// Plan of a search for the first bad version, with the kernel of each version. Some kernels may still have to be
/// built.
#[derive(Debug)]
pub struct BisectPlan {
    /// The search: its campaign, the deciding metric, and the versions.
    pub search: Bisect,
    /// Name of a kernel or text form of a recipe, one for each version.
    kernels: Vec<String>,
}

impl Lab {
    /// Prepares a search. Builds nothing, but fetches the packaged kernels that the request names. For a search in a
    /// git tree, the size of earlier builds is subtracted from the cache's size limit for snapshots.
    pub fn bisect(
        &mut self,
        mut campaign: Campaign,
        request: &BisectRequest,
    ) -> Result<BisectPlan, LabError> {
        let facts = facts(&campaign.scenarios[0]).ok();
        let primary = facts.and_then(|facts| facts.primary).unwrap_or_default();
        let metric = question(&mut campaign, request, primary, &vocabulary())?;
        let kernel = &campaign.variants[0].kernel;
        let (history, kernels) = if Recipe::is_recipe(kernel) {
            let commits = commits(&kernel.parse()?, request)?;
            let workshop = building::workshop(self.cache()?, self.options());
            share_limit(self.options_mut(), &workshop);
            commits
        } else {
            self.packages(request)?
        };
        let search = Bisect {
            campaign,
            metric,
            history,
        };
        Ok(BisectPlan { search, kernels })
    }

    fn packages(&self, request: &BisectRequest) -> Result<(History, Vec<String>), LabError> {
        let cache = self.cache()?;
        let freshness = Freshness::new(self.options().refresh);
        let find = |name: &String| -> Result<Kernel, LabError> {
            let reference: KernelRef = name.parse()?;
            let mut watch = |step: &pagetide_kernel::Step| self.say(&step.to_string());
            Ok(cache.resolve(&reference, freshness, &mut watch)?)
        };
        let (good, bad) = (find(&request.good)?, find(&request.bad)?);
        if good.digest == bad.digest {
            let what = good.release;
            return Err(BisectError::Same { what }.into());
        }
        let all = if request.among.is_empty() {
            cache.between(&good, &bad)?
        } else {
            // The user named these kernels, so they are searched in the order given.
            let named = request.among.iter().map(find);
            let mut all = named.collect::<Result<Vec<_>, _>>()?;
            let mut seen = BTreeSet::from([good.digest.clone(), bad.digest.clone()]);
            all.retain(|kernel| seen.insert(kernel.digest.clone()));
            all.insert(0, good);
            all.push(bad);
            all
        };
        let version = |kernel: &Kernel| {
            let same = all.iter().filter(|other| other.release == kernel.release);
            let name = match same.count() {
                0 | 1 => kernel.release.clone(),
                _ => format!("{} {}", kernel.release, kernel.digest.short()),
            };
            Version {
                id: kernel.digest.short().to_owned(),
                name: name.replace([':', ',', '\n'], "-"),
                what: kernel.origin.reference.clone(),
            }
        };
        let kernels = all.iter().map(|kernel| kernel.digest.to_string());
        Ok((
            History::line(all.iter().map(version).collect()),
            kernels.collect(),
        ))
    }

    /// Returns a sentence with the predicted cost of the search. Builds nothing.
    pub fn cost(
        &self,
        plan: &BisectPlan,
        arena: &dyn Arena,
        store: &Store,
    ) -> Result<String, LabError> {
        let history = &plan.search.history;
        let mut ends = plan.search.campaign.clone();
        let template = ends.variants[0].clone();
        ends.variants = [history.good, history.bad]
            .map(|place| VariantSpec {
                name: history.versions[place].name.clone(),
                kernel: plan.kernels[place].clone(),
                ..template.clone()
            })
            .to_vec();
        let kernels = self.forecast(&mut ends)?;
        let (ends, jobs) = (ends.variants, self.jobs());
        Ok(predict(&plan.search, ends, &kernels, arena, store, jobs)?)
    }

    /// Runs the search, building kernels as needed. A version whose source does not build is skipped. Any other failure
    /// of a build ends the search.
    pub fn search(
        &self,
        plan: &BisectPlan,
        site: Site<'_>,
        audience: &Audience<'_>,
    ) -> Result<BisectOutcome, LabError> {
        let mut workshop = building::workshop(self.cache()?, self.options());
        let mut supply = |place: usize| -> Result<Supplied, SupplyError> {
            let name = &plan.kernels[place];
            if !Recipe::is_recipe(name) {
                return Ok(Supplied::Kernel(name.clone()));
            }
            let mut watch = |step: &BuildStep| self.say(&step.to_string());
            match workshop.build(&name.parse()?, &mut watch) {
                Ok(built) => Ok(Supplied::Kernel(built.name)),
                Err(why) if why.is_by_source() => Ok(Supplied::Skip(why.to_string())),
                Err(why) => Err(why.into()),
            }
        };
        Ok(bisect(&plan.search, &mut supply, site, audience)?)
    }
}

/// Returns the commits from the good to the bad revision, and the recipe for the kernel of each commit.
fn commits(like: &Recipe, request: &BisectRequest) -> Result<(History, Vec<String>), LabError> {
    let SourceRef::Git { folder, .. } = &like.source else {
        let source_name = like.source.to_string();
        return Err(BisectError::NoHistory { source_name }.into());
    };
    if !request.among.is_empty() {
        return Err(BisectError::Both.into());
    }
    let commits = Commits::between(folder, &request.good, &request.bad)?;
    let kernels = (0..commits.commits.len())
        .map(|place| commits.recipe(place, like).to_string())
        .collect();
    let version = |commit: &pagetide_source::Commit| Version {
        id: commit.id.clone(),
        name: short(&commit.id).to_owned(),
        what: commit.subject.clone(),
    };
    let history = History {
        versions: commits.commits.iter().map(version).collect(),
        good: 0,
        bad: commits.commits.len() - 1,
        parents: commits.parents,
    };
    Ok((history, kernels))
}
