//! Limits of a scenario's groups that a variant sets: `group/NAME/KEY`, such as `group/sensitive/low`.
//!
//! With these limits two variants can be compared whose only difference is a limit of a group. The limits are applied
//! when the groups are created, after the settings of the machine.

use pagetide_quantity::hint;
use pagetide_record::Subject;

use crate::error::ScenarioError;
use crate::expr::{Names, Quantity};

use super::spec::{GroupSpec, check};

/// First part of the name of a setting that is a limit of a group.
pub const GROUP_SETTING: &str = "group/";

/// Returns the names that limits may use: `memory` and `swap`.
pub(crate) fn names(memory: pagetide_quantity::Bytes, swap: pagetide_quantity::Bytes) -> Names {
    Names::from([
        ("memory".to_owned(), Quantity::bytes(memory.0 as f64)),
        ("swap".to_owned(), Quantity::bytes(swap.0 as f64)),
    ])
}

/// Returns the groups of a trial: those that `describe` returns for the scenario's parameters, with the limits that the
/// variant sets. Fails if a limit is wrong, if groups contradict each other, or if a named group does not exist.
pub(crate) fn of_trial(
    subject: &Subject,
    describe: impl FnOnce(&Names) -> Result<Vec<GroupSpec>, String>,
) -> Result<Vec<GroupSpec>, ScenarioError> {
    let memory = subject.memory.bytes();
    let names = names(memory, subject.swap_size);
    let groups = describe(&names).and_then(|groups| {
        let groups = with_settings(subject, groups, &names)?;
        check(&groups, memory)?;
        Ok(groups)
    });
    groups.map_err(|why| ScenarioError::Contradiction {
        scenario: subject.scenario.clone(),
        why,
    })
}

fn with_settings(
    subject: &Subject,
    mut groups: Vec<GroupSpec>,
    names: &Names,
) -> Result<Vec<GroupSpec>, String> {
    let settings = &subject.variant.settings;
    for (setting, value) in settings {
        let Some(rest) = setting.strip_prefix(GROUP_SETTING) else {
            continue;
        };
        let (name, key) = rest.split_once('/').ok_or_else(|| {
            format!("`{setting}` is not a limit of a group: write {GROUP_SETTING}NAME/KEY, such as group/program/high")
        })?;
        if groups.is_empty() {
            return Err(format!(
                "it has no memory groups for `{setting}`: leave the setting out, or choose another scenario"
            ));
        }
        let known: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        let group = groups.iter_mut().find(|group| group.name == name);
        let group = group.ok_or_else(|| {
            let all = format!("its groups are {}", known.join(", "));
            let near = hint(name, known.iter().map(String::as_str), &all);
            format!("it has no group for `{setting}`: {near}")
        })?;
        group.set(key, value, names)?;
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use pagetide_quantity::Bytes;
    use pagetide_record::MemorySpec;

    use crate::groups::Limit;

    use super::*;

    fn subject(settings: &[(&str, &str)]) -> Subject {
        let mut subject = Subject {
            scenario: "neighbours".to_owned(),
            memory: MemorySpec::Free(Bytes::from_mib(64)),
            ..Subject::default()
        };
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        subject.variant.settings.extend(settings);
        subject
    }

    #[test]
    fn a_variant_sets_the_limits_of_a_group_over_those_of_the_scenario() {
        let describe = |_: &Names| {
            Ok(vec![
                GroupSpec::new("sensitive").with(Limit::Low, Bytes::from_mib(1)),
                GroupSpec::new("hungry-1"),
            ])
        };
        let settings = [
            ("group/sensitive/low", "0.25*memory"),
            ("group/hungry-1/memory.max", "20M"),
            ("vm.swappiness", "10"),
        ];
        let groups = of_trial(&subject(&settings), describe).unwrap();
        assert_eq!(groups[0].limit(Limit::Low), Some(Bytes::from_mib(16)));
        assert_eq!(groups[1].limit(Limit::Max), Some(Bytes::from_mib(20)));
        for (setting, value, words) in [
            (
                "group/sensitiv/low",
                "1M",
                &["no group", "did you mean \"sensitive\"?"][..],
            ),
            ("group/sensitive", "1M", &["group/NAME/KEY"]),
            ("group/sensitive/lower", "1M", &["no `lower`"]),
            ("group/sensitive/low", "soon", &["`soon`"]),
            (
                "group/sensitive/low",
                "65M",
                &["protect 65 MiB", "64 MiB of memory"],
            ),
        ] {
            let why = of_trial(&subject(&[(setting, value)]), describe)
                .unwrap_err()
                .to_string();
            assert!(
                words.iter().all(|word| why.contains(word)),
                "{setting}: {why}"
            );
        }
        let why = of_trial(&subject(&settings), |_| Ok(Vec::new())).unwrap_err();
        assert!(why.to_string().contains("no memory groups"), "{why}");
    }
}
