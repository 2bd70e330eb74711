//! Definition of a scenario: the single source for its help, man page, `docs/scenarios.md`, campaign checks and record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pagetide_quantity::{Bytes, MetricDef, hint};
use pagetide_record::Subject;
use serde::Serialize;

use crate::error::{ScenarioError, Stop};
use crate::expr::{Names, Quantity};
pub(crate) use crate::form::{Form, form};
use crate::groups::{self, GroupSpec};
use crate::params::{self, Param, Params};
use crate::trial::Trial;

/// Resources of the machine that are available to a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Memory available to the workload at its start: the limit of its memory cgroup, if it has one.
    pub memory: Bytes,
    /// Size of the swap device; zero if there is none.
    pub swap_size: Bytes,
    /// Number of processors of the machine.
    pub cpus: u32,
}

/// Requirements of a scenario that the arena must meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a need of its own")]
pub struct Needs {
    /// True if the scenario needs a swap device.
    pub swap: bool,
    /// True if the trial is invalid when the kernel reclaimed nothing.
    pub pressure: bool,
    /// Size of the file system for files that the scenario needs; `None` if it needs none. The arena mounts it at
    /// [`crate::TrialContext::work_dir`].
    pub filesystem: Option<Bytes>,
    /// Path of the reference file. The arena must pass its compact form as [`crate::TrialContext::data`].
    pub data: Option<PathBuf>,
    /// True if the scenario needs transparent huge pages.
    pub thp: bool,
    /// Settings that apply if the kernel has them and the variant does not set them. The names are those of `--set`.
    pub settings: BTreeMap<String, String>,
    /// Digest of the root of a user's program. A file system with its content must be mounted at
    /// [`crate::TrialContext::work_dir`], with `/proc` and `/dev`.
    pub root: Option<String>,
    /// Why the scenario needs a machine of its own, as a clause such as "it counts free blocks of the whole machine";
    /// `None` if a memory cgroup is enough.
    pub own_machine: Option<&'static str>,
    /// True if the scenario needs packet sockets (`CONFIG_PACKET`, module `af_packet`).
    pub packet: bool,
    /// True if the scenario creates memory cgroups.
    pub groups: bool,
    /// True if the scenario requests reclaim from a cgroup through `memory.reclaim`.
    pub reclaim_requests: bool,
    /// True if the scenario sets `memory.zswap.max` of a cgroup.
    pub zswap_max: bool,
}

/// A scenario, implemented by the struct of its parameters.
pub(crate) trait Scenario: Params {
    /// Metrics of the scenario, in display order.
    const METRICS: &'static [MetricDef];

    /// Fails if parameters contradict each other or do not suit the machine. `name` is the scenario's name, for
    /// messages.
    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError>;

    /// Returns what the scenario needs from the arena.
    fn needs(&self, form: Form) -> Needs;

    /// Returns the descriptions of the scenario's memory cgroups, whose limits may use `names`; none by default. The
    /// error says what is wrong with a limit.
    fn groups(&self, names: &Names) -> Result<Vec<GroupSpec>, String> {
        let _ = names;
        Ok(Vec::new())
    }

    /// Runs the scenario and writes its results to `trial`.
    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop>;
}

/// Public description of a scenario, which is the same for all trials.
#[derive(Serialize)]
pub struct Definition {
    /// Name of the scenario in kebab case.
    pub name: &'static str,
    /// The question that the scenario answers, in one sentence.
    pub summary: &'static str,
    /// What the scenario does, step by step.
    pub docs: &'static str,
    /// Program or publication that the scenario comes from.
    pub origin: &'static str,
    /// Mistakes of the original that are corrected here; empty if there is no original.
    pub repaired: &'static str,
    /// Parameters of the scenario, in display order.
    pub params: &'static [Param],
    /// Metrics of the scenario, in display order.
    pub metrics: &'static [MetricDef],
    /// True if `--as-written` is possible: it runs the scenario in its original form.
    pub has_as_written: bool,
    /// Memory of the machine on which the original ran. The name `scale` in parameters is the memory relative to it.
    #[serde(skip)]
    pub original_memory: Bytes,
    /// Default amount of memory of a trial. With it, a trial takes seconds.
    #[serde(skip)]
    pub default_memory: Bytes,
    /// Parameters whose default in this scenario differs from the general one: names and defaults.
    #[serde(skip)]
    pub presets: &'static [(&'static str, &'static str)],
    #[serde(skip)]
    pub(crate) check: Check,
    #[serde(skip)]
    pub(crate) needs: fn(&BTreeMap<String, String>, Form) -> Result<Needs, ScenarioError>,
    /// Returns the memory cgroups of a trial, with the limits that its variant sets.
    #[serde(skip)]
    pub(crate) groups: fn(&Subject) -> Result<Vec<GroupSpec>, ScenarioError>,
    #[serde(skip)]
    pub(crate) run: fn(&BTreeMap<String, String>, &mut Trial<'_>) -> Result<(), Stop>,
}

type Check = fn(&str, &BTreeMap<String, String>, Form, &Context) -> Result<(), ScenarioError>;

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Definition")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Texts of a scenario's definition.
#[derive(Clone, Copy)]
pub(crate) struct Texts {
    pub name: &'static str,
    pub summary: &'static str,
    pub docs: &'static str,
    pub origin: &'static str,
    pub repaired: &'static str,
}

impl Definition {
    /// Returns the definition of scenario `S`.
    pub(crate) const fn of<S: Scenario>(
        texts: Texts,
        original_memory: Bytes,
        presets: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            name: texts.name,
            summary: texts.summary,
            docs: texts.docs,
            origin: texts.origin,
            repaired: texts.repaired,
            params: S::SCHEMA,
            metrics: S::METRICS,
            has_as_written: !texts.repaired.is_empty(),
            original_memory,
            default_memory: Bytes::from_mib(64),
            presets,
            check: |name, params, form, context| S::read(params)?.check(name, form, context),
            needs: |params, form| Ok(S::read(params)?.needs(form)),
            groups: |subject| {
                let scenario = S::read(&subject.params)?;
                groups::of_trial(subject, |names| scenario.groups(names))
            },
            run: |params, trial| S::read(params)?.run(trial),
        }
    }

    /// Returns the same definition with a different default memory.
    pub(crate) const fn with_memory(self, default_memory: Bytes) -> Self {
        Self {
            default_memory,
            ..self
        }
    }

    /// Returns the default of a parameter in this scenario; if `as_written` is true, that of the original form.
    pub fn default_of(&self, param: &Param, as_written: bool) -> &'static str {
        let preset = self.presets.iter().find(|(name, _)| *name == param.name);
        match (preset, param.as_written) {
            (_, Some(original)) if as_written => original,
            (Some((_, preset)), _) => preset,
            _ => param.default,
        }
    }
}

/// Resolves every parameter to canonical text. Fails for unknown, invalid or contradicting parameters.
pub(crate) fn resolve(
    definition: &Definition,
    as_written: bool,
    scale: Option<f64>,
    given: &BTreeMap<String, String>,
    context: &Context,
) -> Result<BTreeMap<String, String>, ScenarioError> {
    let scenario = || definition.name.to_owned();
    if as_written && !definition.has_as_written {
        return Err(ScenarioError::NoOriginal {
            scenario: scenario(),
        });
    }
    for name in given.keys() {
        if !definition.params.iter().any(|param| param.name == name) {
            return Err(ScenarioError::UnknownParameter {
                scenario: scenario(),
                given: name.clone(),
                hint: hint(
                    name,
                    definition.params.iter().map(|param| param.name),
                    &format!(
                        "`pagetide list scenarios {} --long` shows all",
                        definition.name
                    ),
                ),
            });
        }
    }
    let scale = match scale {
        Some(scale) if scale.is_finite() && scale > 0.0 => scale,
        Some(scale) => {
            return Err(ScenarioError::BadValue {
                scenario: scenario(),
                parameter: "scale",
                given: scale.to_string(),
                why: "give a number above 0".to_owned(),
            });
        }
        None => context.memory.0 as f64 / definition.original_memory.0.max(1) as f64,
    };
    let mut names = Names::from([
        (
            "memory".to_owned(),
            Quantity::bytes(context.memory.0 as f64),
        ),
        (
            "swap".to_owned(),
            Quantity::bytes(context.swap_size.0 as f64),
        ),
        ("cpus".to_owned(), Quantity::number(f64::from(context.cpus))),
        ("scale".to_owned(), Quantity::number(scale)),
    ]);
    let mut resolved = BTreeMap::new();
    for param in definition.params {
        let text = given
            .get(param.name)
            .map_or_else(|| definition.default_of(param, as_written), String::as_str);
        let (text, quantity) = params::canonical(definition.name, param, text, &names)?;
        if let Some(quantity) = quantity {
            names.insert(param.name.to_owned(), quantity);
        }
        if param.left_out_as != Some(text.as_str()) {
            resolved.insert(param.name.to_owned(), text);
        }
    }
    (definition.check)(definition.name, &resolved, form(as_written), context)?;
    Ok(resolved)
}

/// Fails if the workload does not fit into memory and swap.
pub(crate) fn must_fit(wanted: Bytes, context: &Context) -> Result<(), ScenarioError> {
    if wanted.0 > context.memory.0.saturating_add(context.swap_size.0) {
        return Err(ScenarioError::TooLarge {
            wanted,
            memory: context.memory,
            swap: context.swap_size,
        });
    }
    Ok(())
}
