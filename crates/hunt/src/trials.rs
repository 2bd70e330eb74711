//! Measures workloads with real trials. Trials that already have a record are not run again.

use pagetide_arena::{Trial, VariantSpec};
use pagetide_campaign::{Event, RunError, Site, Tried};
use pagetide_profile::{PROFILE, Profile};
use pagetide_record::{FilesSpec, Pass, Record};
use pagetide_store::StoreError;
use pagetide_workload::Workload;

use crate::evidence::Evidence;
use crate::examine::{Examiner, Question};
use crate::executed::{Executed, Reached};
use crate::goal::{Goal, Outcome};

/// Difference between two successive seeds of one measurement.
const STRIDE: u64 = 1000;
/// Why it is not known which functions ran.
const NO_LIST: &str = "it is not known which functions ran, because the kernel has no list of its functions \
    (CONFIG_KALLSYMS): the search learns from counters alone";

/// Measures workloads under the hunted variant, and also under the variant to compare with if there is one.
pub struct Trials<'a, 'b> {
    site: &'a mut Site<'b>,
    name: String,
    goal: Goal,
    hunted: VariantSpec,
    other: Option<VariantSpec>,
    /// What the hunted variant executed so far; `None` if trials are not profiled.
    reached: Option<Reached>,
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
            reached: None,
        }
    }

    /// Makes all trials profiled passes from now on, so that it is known which functions ran. If the arena cannot run
    /// profiled passes, tells why and leaves the trials as they are.
    pub fn profile(&mut self) {
        match self.site.arena.lacks_profiles() {
            Some(why) => self.site.watch.event(&Event::Told(&why)),
            None => self.reached = Some(Reached::default()),
        }
    }

    /// Returns what the measured trials of the hunted variant executed; `None` if they are not profiled.
    pub fn reached(&self) -> Option<&Reached> {
        self.reached.as_ref()
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
        let pass = match self.reached {
            Some(_) => Pass::Profiled,
            None => Pass::Timed,
        };
        let trials: Vec<Trial> = trials
            .iter()
            .map(|trial| Trial {
                pass,
                ..trial.clone()
            })
            .collect();
        let Some(tried) = self.site.several(&self.name, &trials)? else {
            return Ok(None);
        };
        let each = tried.iter().map(|tried| match tried {
            Tried::Ran(record) => self.evidence(record),
            Tried::Refused(why) => Ok(Evidence::refused(why)),
        });
        Ok(Some(each.collect::<Result<_, RunError>>()?))
    }

    /// Reads the evidence of a record, with what the kernel executed if the trial was profiled and its scenario ended.
    fn evidence(&mut self, record: &Record) -> Result<Evidence, RunError> {
        let mut evidence = Evidence::of(record);
        if record.sections.iter().any(|one| one.name == PROFILE) {
            let reader = self.site.store.load(&record.id())?;
            let blob = reader.blob(PROFILE).map_err(StoreError::Record)?;
            match Profile::read(blob) {
                Ok(profile) if profile.is_without_list() => self.lack_list(),
                Ok(profile) => evidence.executed = Some(Executed::of(&record.subject, profile)),
                Err(why) => evidence.unusable = Some(why.to_string()),
            }
        }
        Ok(evidence)
    }

    /// Notes, and tells the first time, that a kernel has no list of its functions.
    fn lack_list(&mut self) {
        if let Some(reached) = &mut self.reached
            && reached.unknown.is_none()
        {
            reached.unknown = Some(NO_LIST.to_owned());
            self.site.watch.event(&Event::Told(NO_LIST));
        }
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
        if let Some(reached) = &mut self.reached {
            let hunted = evidence.chunks(each).flat_map(|all| &all[..of_one]);
            let known = hunted.filter_map(|one| one.executed.as_ref());
            known.for_each(|executed| reached.add(executed));
        }
        let outcomes = evidence.chunks(each).map(|all| {
            let (hunted, other) = all.split_at(of_one);
            self.goal.measure(hunted, other)
        });
        Ok(Some(outcomes.collect()))
    }
}

/// Returns the trial of a workload on its machine, under a variant. Swap that the variant sets replaces that of the
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
