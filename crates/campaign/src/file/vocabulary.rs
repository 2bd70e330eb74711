//! The words a campaign file may use beyond its own keys: arenas, scenarios with their parameters and metrics, settings.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_quantity::command::told;
use pagetide_quantity::{Bytes, hint, slip};
use pagetide_record::ArenaKind;

/// The words that are known; the command line fills it from the definitions of scenarios and settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// The kernel of whoever names none.
    pub kernel: String,
    /// Arenas that are there.
    pub arenas: Vec<ArenaKind>,
    /// Scenarios by name.
    pub scenarios: BTreeMap<String, ScenarioWords>,
    /// Settings by the names that are documented; others of a known form are let through, unless they are so near to
    /// one of these that a slip is likely.
    pub settings: Vec<String>,
}

/// What can be said about one scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioWords {
    /// Names of its parameters.
    pub params: Vec<String>,
    /// Names of its metrics.
    pub metrics: Vec<String>,
    /// How many of its metrics decide.
    pub primaries: usize,
    /// Memory that it finds where nobody says how much.
    pub default_memory: Bytes,
    /// Memory of the machine that its original ran on.
    pub original_memory: Bytes,
}

/// A scenario's name without arguments: `zipf` for `zipf(1.1)`, `file` for `file:trace.txt`.
pub(crate) fn plain_name(name: &str) -> &str {
    name.split(['(', ':']).next().unwrap_or(name).trim()
}

impl Vocabulary {
    /// The words of a scenario; a name may carry arguments, as in `zipf(1.1)` or `file:trace.txt`.
    pub fn scenario(&self, name: &str) -> Option<&ScenarioWords> {
        self.scenarios.get(plain_name(name))
    }

    /// What to say of a metric that no valid record has: of this scenario, or of any.
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

    /// The documented setting that this name is probably a slip of; `None` where it is documented itself, or like none.
    pub fn setting_meant(&self, name: &str) -> Option<String> {
        if self.settings.iter().any(|known| known == name) {
            return None;
        }
        slip(name, self.settings.iter().map(String::as_str))
    }
}
