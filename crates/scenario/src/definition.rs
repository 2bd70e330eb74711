//! Definition of a scenario: the single source for help, man page, `docs/scenarios.md`, campaign checker and record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pagetide_quantity::{Bytes, MetricDef, hint};
use serde::Serialize;

use crate::error::{ScenarioError, Stop};
use crate::expr::{Names, Quantity};
use crate::params::{self, Param, Params};
use crate::trial::Trial;

/// Resources available to a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Memory available to the workload at its start.
    pub memory: Bytes,
    /// Size of the swap device; zero for none.
    pub swap_size: Bytes,
    /// Number of processors.
    pub cpus: u32,
}

/// Requirements of a scenario on the arena.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a need of its own")]
pub struct Needs {
    /// Needs swap space.
    pub swap: bool,
    /// The result is invalid if the kernel reclaimed nothing.
    pub pressure: bool,
    /// Needs an ext4 file system of this size on the simulated SSD, mounted at [`crate::Place::work_dir`].
    pub filesystem: Option<Bytes>,
    /// The reference file whose compact form the arena must pass as [`crate::Place::data`].
    pub data: Option<PathBuf>,
    /// Needs transparent huge pages.
    pub thp: bool,
    /// Settings, named as in `--set`, that apply unless the variant sets them, and if the kernel has them.
    pub settings: BTreeMap<String, String>,
    /// Digest of a program's root: a file system with its content must be mounted at [`crate::Place::work_dir`], with
    /// `/proc` and `/dev`.
    pub root: Option<String>,
    /// Needs packet sockets (`CONFIG_PACKET`, module `af_packet`).
    pub packet: bool,
}

/// Variant of the scenario that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// With the mistakes of the original corrected.
    Repaired,
    /// Exactly as the original.
    AsWritten,
}

/// Implemented by the file of each scenario.
pub(crate) trait Scenario: Params {
    /// Its metrics, in display order.
    const METRICS: &'static [MetricDef];

    /// Fails if parameters contradict each other or do not fit the machine; `name` is the scenario's name.
    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError>;

    /// Its requirements on the arena.
    fn needs(&self, form: Form) -> Needs;

    /// Runs the experiment.
    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop>;
}

/// Public description of a scenario.
#[derive(Serialize)]
pub struct Definition {
    /// Name in kebab case.
    pub name: &'static str,
    /// The question that it answers, in one sentence.
    pub summary: &'static str,
    /// What it does, step by step.
    pub docs: &'static str,
    /// Origin of the scenario.
    pub origin: &'static str,
    /// What was wrong with the original and is corrected here; empty if there is no original.
    pub repaired: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Its metrics.
    pub metrics: &'static [MetricDef],
    /// True if `--as-written` runs the original's form.
    pub has_as_written: bool,
    /// Memory of the machine that the original ran on; `scale` is relative to it.
    #[serde(skip)]
    pub original_memory: Bytes,
    /// Memory of a trial by default; a default trial then takes seconds.
    #[serde(skip)]
    pub default_memory: Bytes,
    /// Defaults of this scenario that differ from those of the parameters.
    #[serde(skip)]
    pub presets: &'static [(&'static str, &'static str)],
    #[serde(skip)]
    pub(crate) check: Check,
    #[serde(skip)]
    pub(crate) needs: fn(&BTreeMap<String, String>, Form) -> Result<Needs, ScenarioError>,
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

/// Texts of a definition.
#[derive(Clone, Copy)]
pub(crate) struct Texts {
    pub name: &'static str,
    pub summary: &'static str,
    pub docs: &'static str,
    pub origin: &'static str,
    pub repaired: &'static str,
}

impl Definition {
    /// The definition of scenario `S`.
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
            run: |params, trial| S::read(params)?.run(trial),
        }
    }

    /// The same definition with another default memory.
    pub(crate) const fn with_memory(self, default_memory: Bytes) -> Self {
        Self {
            default_memory,
            ..self
        }
    }

    /// Default of a parameter in this scenario and form.
    pub fn default_of(&self, param: &Param, as_written: bool) -> &'static str {
        let preset = self.presets.iter().find(|(name, _)| *name == param.name);
        match (preset, param.as_written) {
            (_, Some(original)) if as_written => original,
            (Some((_, preset)), _) => preset,
            _ => param.default,
        }
    }
}

/// Resolves every parameter to canonical text. Fails for unknown parameters and invalid values.
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
        resolved.insert(param.name.to_owned(), text);
    }
    (definition.check)(definition.name, &resolved, form(as_written), context)?;
    Ok(resolved)
}

pub(crate) const fn form(as_written: bool) -> Form {
    if as_written {
        Form::AsWritten
    } else {
        Form::Repaired
    }
}

/// Fails if the workload does not fit into memory and swap together.
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
