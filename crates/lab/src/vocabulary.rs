//! Names that a campaign file or command line may use, from the definitions of scenarios and settings.

use pagetide_campaign::squeeze::ScenarioFacts;
use pagetide_campaign::{ScenarioSpec, ScenarioWords, Vocabulary};
use pagetide_harness::settings;
use pagetide_quantity::Unit;
use pagetide_scenario::ScenarioError;

use crate::arenas;

/// Returns all known names.
pub fn vocabulary() -> Vocabulary {
    Vocabulary {
        kernel: pagetide_kernel::defaults()[1].to_string(),
        arenas: arenas::KINDS.to_vec(),
        scenarios: pagetide_scenario::list()
            .iter()
            .map(|definition| {
                let words = ScenarioWords {
                    params: definition
                        .params
                        .iter()
                        .map(|param| param.name.to_owned())
                        .collect(),
                    metrics: definition
                        .metrics
                        .iter()
                        .map(|metric| metric.name.to_owned())
                        .collect(),
                    primaries: definition.metrics.iter().filter(|m| m.primary).count(),
                    primary_counts: definition
                        .metrics
                        .iter()
                        .filter(|metric| metric.primary && metric.unit != Unit::Nanos)
                        .map(|metric| metric.name.to_owned())
                        .collect(),
                    default_memory: definition.default_memory,
                    original_memory: definition.original_memory,
                };
                (definition.name.to_owned(), words)
            })
            .collect(),
        settings: settings::KNOWN.iter().map(ToString::to_string).collect(),
    }
}

/// Returns the primary metric of a scenario and the defaults of its parameters, as needed by searches. Fails if the
/// scenario is unknown.
pub fn facts(spec: &ScenarioSpec) -> Result<ScenarioFacts<'static>, ScenarioError> {
    let definition = pagetide_scenario::find(&spec.name)?;
    let mut metrics = definition.metrics.iter();
    let params = definition.params.iter();
    Ok(ScenarioFacts {
        primary: metrics
            .find(|metric| metric.primary)
            .map(|metric| metric.name),
        defaults: params
            .map(|param| (param.name, definition.default_of(param, spec.as_written)))
            .collect(),
    })
}
