//! A scenario's definition: the one source of help, man page, GUIDE, campaign checker and record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pagetide_quantity::{Bytes, MetricDef, hint};
use serde::Serialize;

use crate::error::{ScenarioError, Stop};
use crate::expr::{Names, Quantity};
use crate::params::{self, Param, Params};
use crate::trial::Trial;

/// What a scenario finds where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Memory free to the workload at its start.
    pub memory: Bytes,
    /// Size of the swap, zero for none.
    pub swap_size: Bytes,
    /// Number of processors.
    pub cpus: u32,
}

/// What a scenario needs of the arena.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a need of its own")]
pub struct Needs {
    /// Swap space.
    pub swap: bool,
    /// The result is invalid if the kernel reclaimed nothing.
    pub pressure: bool,
    /// An ext4 file system of this size on the simulated SSD, at [`crate::Place::work_dir`].
    pub filesystem: Option<Bytes>,
    /// The file of references whose compact form must be carried in as [`crate::Place::data`].
    pub data: Option<PathBuf>,
    /// Transparent huge pages.
    pub thp: bool,
    /// Settings, in the words of `--set`, that must hold where the variant says nothing else and the kernel has them.
    pub settings: BTreeMap<String, String>,
    /// The root of a program, by its digest: a file system with it lies at [`crate::Place::work_dir`], with `/proc` and `/dev`.
    pub root: Option<String>,
    /// Packet sockets (`CONFIG_PACKET`, module `af_packet`).
    pub packet: bool,
}

/// In which form a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// With the original's faults repaired.
    Repaired,
    /// As the original did it.
    AsWritten,
}

/// What a scenario's file provides.
pub(crate) trait Scenario: Params {
    /// What it measures, in the order in which it is shown.
    const METRICS: &'static [MetricDef];

    /// Refuses parameters that contradict each other or the machine; `name` is the scenario's.
    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError>;

    /// What it needs of the arena.
    fn needs(&self, form: Form) -> Needs;

    /// The experiment.
    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop>;
}

/// A scenario as everybody else knows it.
#[derive(Serialize)]
pub struct Definition {
    /// Name in kebab case.
    pub name: &'static str,
    /// What it asks, in one sentence.
    pub summary: &'static str,
    /// What it does, step by step.
    pub docs: &'static str,
    /// Where it comes from.
    pub origin: &'static str,
    /// What was wrong with the original and is right here; empty where there is no original.
    pub repaired: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Its metrics.
    pub metrics: &'static [MetricDef],
    /// Whether `--as-written` gives the original's form.
    pub has_as_written: bool,
    /// Memory of the machine the original ran on; `scale` is relative to it.
    #[serde(skip)]
    pub original_memory: Bytes,
    /// Memory of a trial where none is named; a default trial then takes seconds.
    #[serde(skip)]
    pub default_memory: Bytes,
    /// Defaults that differ from the schema's under this name.
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

/// The texts of a definition.
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

    /// The same with another memory where none is named.
    pub(crate) const fn with_memory(self, default_memory: Bytes) -> Self {
        Self {
            default_memory,
            ..self
        }
    }

    /// The default of a parameter under this name, in this form.
    pub fn default_of(&self, param: &Param, as_written: bool) -> &'static str {
        let preset = self.presets.iter().find(|(name, _)| *name == param.name);
        match (preset, param.as_written) {
            (_, Some(original)) if as_written => original,
            (Some((_, preset)), _) => preset,
            _ => param.default,
        }
    }
}

/// Resolves every parameter of `definition` to canonical text.
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

/// Refuses a workload that fits neither memory nor swap.
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
