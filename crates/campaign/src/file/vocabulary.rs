//! Names that a campaign file may use besides its own keys: arenas, scenarios with their parameters and metrics,
//! settings.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_quantity::command::told;
use pagetide_quantity::{Bytes, hint, slip};
use pagetide_record::ArenaKind;

/// The known names. The command line fills it from the definitions of scenarios and settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// The kernel of a variant that names none.
    pub kernel: String,
    /// Arenas of this version.
    pub arenas: Vec<ArenaKind>,
    /// Scenarios by name.
    pub scenarios: BTreeMap<String, ScenarioWords>,
    /// Documented names of settings. Others of a known form are accepted, unless they are so similar to one of these
    /// that a typing error is likely.
    pub settings: Vec<String>,
}

/// The names of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioWords {
    /// Names of its parameters.
    pub params: Vec<String>,
    /// Names of its metrics.
    pub metrics: Vec<String>,
    /// Number of its primary metrics.
    pub primaries: usize,
    /// Memory available to it by default.
    pub default_memory: Bytes,
    /// Memory of the machine on which its original ran.
    pub original_memory: Bytes,
}

/// A scenario's name without arguments: `zipf` for `zipf(1.1)`, `file` for `file:trace.txt`.
pub(crate) fn plain_name(name: &str) -> &str {
    name.split(['(', ':']).next().unwrap_or(name).trim()
}

impl Vocabulary {
    /// The entry of a scenario; its name may have arguments, as in `zipf(1.1)` or `file:trace.txt`.
    pub fn scenario(&self, name: &str) -> Option<&ScenarioWords> {
        self.scenarios.get(plain_name(name))
    }

    /// Message on a metric that no valid record of this scenario, or of any scenario, has.
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
                told("list records")
            );
        }
        let hint = hint(
            metric,
            known.iter().copied(),
            "`pagetide list scenarios --long` shows all",
        );
        format!("there is no metric `{metric}`: {hint}")
    }

    /// The documented setting of which this name is probably a typing error; `None` if it is documented itself or
    /// similar to none.
    pub fn setting_meant(&self, name: &str) -> Option<String> {
        if self.settings.iter().any(|known| known == name) {
            return None;
        }
        slip(name, self.settings.iter().map(String::as_str))
    }
}
