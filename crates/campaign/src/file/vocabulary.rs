//! Names that a campaign file may use besides its own keys: arenas, settings, and scenarios with their parameters and
//! metrics.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_quantity::command::in_backticks;
use pagetide_quantity::{Bytes, hint, slip};
use pagetide_record::ArenaKind;

/// Known names. The command line fills them in from the definitions of scenarios and settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// Default kernel, for a variant that names none.
    pub kernel: String,
    /// Kinds of arena that this version has.
    pub arenas: Vec<ArenaKind>,
    /// Parameters and metrics of each scenario, by the scenario's name.
    pub scenarios: BTreeMap<String, ScenarioWords>,
    /// Documented names of settings. An undocumented setting of a known form is accepted, unless it is so similar to a
    /// documented one that a typing error is likely.
    pub settings: Vec<String>,
}

/// Parameters, metrics and default sizes of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioWords {
    /// Names of the scenario's parameters.
    pub params: Vec<String>,
    /// Names of the scenario's metrics.
    pub metrics: Vec<String>,
    /// Number of the scenario's primary metrics.
    pub primaries: usize,
    /// Names of the scenario's primary metrics that are not times.
    pub primary_counts: Vec<String>,
    /// Default memory available to the scenario.
    pub default_memory: Bytes,
    /// Memory of the machine on which the scenario's original ran.
    pub original_memory: Bytes,
}

/// Returns a scenario's name without arguments: `zipf` for `zipf(1.1)`, `file` for `file:trace.txt`.
pub(crate) fn plain_name(name: &str) -> &str {
    name.split(['(', ':']).next().unwrap_or(name).trim()
}

impl Vocabulary {
    /// Returns the entry of a scenario; `None` if it is not known. Its name may have arguments, as in `zipf(1.1)` or
    /// `file:trace.txt`.
    pub fn scenario(&self, name: &str) -> Option<&ScenarioWords> {
        self.scenarios.get(plain_name(name))
    }

    /// Returns a message for a metric without values: either no scenario has this metric, or no valid record has a
    /// value of it. If `scenario` is given, only that scenario is considered.
    pub fn metric_meant(&self, metric: &str, scenario: Option<&str>) -> String {
        let fits = |name: &&String| scenario.is_none_or(|scenario| scenario == *name);
        let known: BTreeSet<&str> = self
            .scenarios
            .iter()
            .filter(|(name, _)| fits(name))
            .flat_map(|(_, words)| words.metrics.iter().map(String::as_str))
            .collect();
        if known.contains(metric) {
            return format!(
                "no valid record that fits has metric `{metric}`: {} shows what is there",
                in_backticks("list records")
            );
        }
        let hint = hint(
            metric,
            known.iter().copied(),
            "`pagetide list scenarios --long` shows all",
        );
        format!("there is no metric `{metric}`: {hint}")
    }

    /// Returns the documented setting that was probably meant by a misspelt name; `None` if the name is documented
    /// itself or similar to none.
    pub fn setting_meant(&self, name: &str) -> Option<String> {
        if self.settings.iter().any(|known| known == name) {
            return None;
        }
        slip(name, self.settings.iter().map(String::as_str))
    }
}
