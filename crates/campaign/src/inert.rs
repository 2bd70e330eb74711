//! Detects settings that cannot have an effect on a campaign's workloads, before the campaign runs.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_arena::{Arena, PreparedTrial};
use pagetide_compare::notes::{Workload, cannot_act, cannot_differ};
use pagetide_record::{Pass, Subject, SwapSpec};

use crate::campaign::Campaign;
use crate::run::{RunError, prepare};

/// Maximum number of cells that are examined. Later cells of a larger matrix mostly combine the same values again.
const MAX_CELLS: usize = 200;

/// Finds settings in which variants differ but which cannot have an effect in some or all of the first [`MAX_CELLS`]
/// cells. Returns a sentence for each setting and reason.
pub fn inert(campaign: &Campaign, arena: &dyn Arena) -> Result<Vec<String>, RunError> {
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut cells = 0;
    let differ = campaign
        .variants
        .windows(2)
        .any(|pair| pair[0].settings != pair[1].settings);
    if differ {
        for cell in campaign.cells().take(MAX_CELLS) {
            let prepared = prepare(campaign, arena, &cell, Pass::Timed)?;
            let subjects: Vec<&Subject> = prepared.iter().map(PreparedTrial::subject).collect();
            cells += 1;
            for pair in of_cell(&subjects) {
                *found.entry(pair).or_default() += 1;
            }
        }
    }
    Ok(found
        .into_iter()
        .map(|((setting, why), count)| {
            let part = if count < cells {
                format!(" in {count} of {cells} cells")
            } else {
                String::new()
            };
            format!("{setting} cannot act{part}: {why}")
        })
        .collect())
}

/// Returns the settings in which variants of a cell differ from the first variant but which cannot have an effect
/// there, each with the reason.
fn of_cell(subjects: &[&Subject]) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    let Some((baseline, others)) = subjects.split_first() else {
        return all;
    };
    for other in others {
        let settings = [&baseline.variant.settings, &other.variant.settings];
        let both = |name: &str| {
            let values = settings.map(|settings| settings.get(name));
            values[0].filter(|_| values[0] == values[1]).cloned()
        };
        // If the baseline has no swap, the settings of the other variant act on that variant's own swap.
        let swap = match baseline.swap {
            SwapSpec::None => other.swap,
            swap => swap,
        };
        let workload = Workload::of(&baseline.scenario, &baseline.params, swap).on(&baseline.nodes);
        for name in settings.iter().flat_map(|settings| settings.keys()) {
            if settings[0].get(name) != settings[1].get(name)
                && let Some(why) = cannot_act(name, workload, &both).or_else(|| {
                    let values = settings.map(|settings| settings.get(name).map(String::as_str));
                    cannot_differ(name, workload, values)
                })
            {
                all.insert((name.clone(), why.to_owned()));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_and_cannot_act_is_named() {
        let subject = |swappiness: &str, pressure: &str| {
            let mut subject = Subject {
                scenario: "usemem".into(),
                ..Subject::default()
            };
            let settings = &mut subject.variant.settings;
            settings.insert("vm.swappiness".into(), swappiness.into());
            settings.insert("vm.vfs_cache_pressure".into(), pressure.into());
            subject
        };
        let [a, b, c] = [
            subject("1", "10"),
            subject("100", "10"),
            subject("100", "99"),
        ];
        assert!(of_cell(&[&a, &b]).is_empty());
        let found: Vec<(String, String)> = of_cell(&[&a, &b, &c]).into_iter().collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "vm.vfs_cache_pressure");
    }

    #[test]
    fn values_between_which_a_workload_sees_no_difference_are_named_before_it_runs() {
        let subject = |value: &str| {
            let mut subject = Subject {
                scenario: "swapbench".into(),
                ..Subject::default()
            };
            let params = &mut subject.params;
            params.insert("page-size".into(), "default".into());
            let settings = &mut subject.variant.settings;
            settings.insert("thp/enabled".into(), value.into());
            subject
        };
        let [never, madvise, always] = ["never", "madvise", "always"].map(subject);
        let found: Vec<_> = of_cell(&[&never, &madvise]).into_iter().collect();
        assert_eq!(found[0].0, "thp/enabled");
        assert!(of_cell(&[&never, &always]).is_empty());
    }
}
