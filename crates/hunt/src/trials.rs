//! Measures workloads with real trials. Trials that already have a record are not run again.

use pagetide_arena::{Trial, VariantSpec};
use pagetide_campaign::{RunError, Site, Tried};
use pagetide_record::FilesSpec;
use pagetide_workload::Workload;

use crate::evidence::Evidence;
use crate::examine::{Examiner, Question};
use crate::goal::{Goal, Outcome};

/// Difference between two successive seeds of one measurement.
const STRIDE: u64 = 1000;

/// Measures workloads under the hunted variant, and also under the variant to compare with if there is one.
pub struct Trials<'a, 'b> {
    site: &'a mut Site<'b>,
    name: String,
    goal: Goal,
    hunted: VariantSpec,
    other: Option<VariantSpec>,
}

impl<'a, 'b> Trials<'a, 'b> {
    /// Creates the examiner. `name` is the name of the hunt in the store.
    pub fn new(
        site: &'a mut Site<'b>,
        name: &str,
        goal: Goal,
        hunted: VariantSpec,
        other: Option<VariantSpec>,
    ) -> Self {
        Self {
            site,
            name: name.to_owned(),
            goal,
            hunted,
            other,
        }
    }

    /// Runs one workload under any variant, with one trial for each seed. Returns the evidence of each, or `None` if
    /// stopped.
    pub fn of_variant(
        &mut self,
        point: &Workload,
        variant: &VariantSpec,
        seeds: std::ops::Range<u64>,
    ) -> Result<Option<Vec<Evidence>>, RunError> {
        let trials: Vec<Trial> = seeds.map(|seed| trial(point, variant, seed)).collect();
        self.run(&trials)
    }

    fn run(&mut self, trials: &[Trial]) -> Result<Option<Vec<Evidence>>, RunError> {
        let tried = self.site.several(&self.name, trials)?;
        let evidence = |tried: &Tried| match tried {
            Tried::Ran(record) => Evidence::of(record),
            Tried::Refused(why) => Evidence::refused(why),
        };
        Ok(tried.map(|tried| tried.iter().map(evidence).collect()))
    }
}

impl Examiner<Workload> for Trials<'_, '_> {
    fn trials_each(&self) -> u64 {
        self.goal.seeds() * (1 + u64::from(self.other.is_some()))
    }

    fn examine(&mut self, asked: &[Question<Workload>]) -> Result<Option<Vec<Outcome>>, RunError> {
        let seeds = self.goal.seeds();
        let variants: Vec<&VariantSpec> = [Some(&self.hunted), self.other.as_ref()]
            .into_iter()
            .flatten()
            .collect();
        let mut trials = Vec::new();
        for Question { point, seed } in asked {
            for variant in &variants {
                let each = (0..seeds).map(|more| trial(point, variant, seed + STRIDE * more));
                trials.extend(each);
            }
        }
        let each = usize::try_from(self.trials_each()).unwrap_or(1);
        let of_one = usize::try_from(seeds).unwrap_or(1);
        let Some(evidence) = self.run(&trials)? else {
            return Ok(None);
        };
        let outcomes = evidence.chunks(each).map(|all| {
            let (hunted, other) = all.split_at(of_one);
            self.goal.measure(hunted, other)
        });
        Ok(Some(outcomes.collect()))
    }
}

/// Returns the trial of a workload on its machine, under a variant. A swap of the variant's own replaces that of the
/// machine.
pub fn trial(workload: &Workload, variant: &VariantSpec, seed: u64) -> Trial {
    let machine = workload.machine.clone().unwrap_or_default();
    let params = [("workload".to_owned(), workload.canonical())];
    Trial {
        scenario: "workload".to_owned(),
        params: params.into(),
        seed,
        variant: variant.clone(),
        memory: machine.memory.unwrap_or_default(),
        swap: variant.swap.or(machine.swap).unwrap_or_default(),
        swap_size: variant.swap_size.or(machine.swap_size),
        files_on: FilesSpec::default().with(machine.fs, machine.files_on),
        ..Trial::default()
    }
}
