//! Settings of the guest's kernel that a variant may change.

use pagetide_harness::{range, settings};
use pagetide_quantity::nearest;
use pagetide_record::cpus::WORKERS;
use pagetide_scenario::GROUP_SETTING;

use crate::error::ExactError;

/// Fails if a setting's name has no known form, or if no kernel accepts the value. The error suggests a similar name,
/// or states the accepted range.
pub(crate) fn check(name: &str, value: &str) -> Result<(), ExactError> {
    if let Some((least, greatest)) = range::exceeded(name, value) {
        return Err(ExactError::SettingOutOfRange {
            name: name.to_owned(),
            value: value.to_owned(),
            least,
            greatest,
        });
    }
    // The limits of groups, and where workers run, are checked with the scenario that has the groups and workers.
    if settings::path(name).is_some() || name.starts_with(GROUP_SETTING) || name == WORKERS {
        return Ok(());
    }
    if let Some((controller, _)) = name.split_once('.')
        && ["memory", "cpu", "io", "pids", "cpuset", "hugetlb"].contains(&controller)
    {
        return Err(ExactError::SettingOfGroup {
            name: name.to_owned(),
        });
    }
    // Users often remember only the last part of a name.
    let known = settings::KNOWN.iter().copied();
    let near = nearest(name, known.clone()).or_else(|| {
        let part = nearest(last_part(name), known.clone().map(last_part))?;
        known
            .map(str::to_owned)
            .find(|known| last_part(known) == part)
    });
    let suggestion = near.map_or(String::new(), |known| format!(", did you mean `{known}`?"));
    Err(ExactError::UnknownSetting {
        name: name.to_owned(),
        suggestion,
    })
}

fn last_part(name: &str) -> &str {
    name.rsplit(['.', '/']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_settings_are_refused_with_a_near_suggestion() {
        let text = |name| check(name, "1").unwrap_err().to_string();
        assert!(text("swappiness").contains("vm.swappiness"));
        assert!(text("vm/swapiness").contains("vm.swappiness"));
        assert!(!text("zzz").contains("did you mean"));
        assert!(check("vm.anything", "1").is_ok());
    }

    #[test]
    fn a_value_that_no_kernel_accepts_and_a_limit_of_a_group_are_refused() {
        let text = |name, value| check(name, value).unwrap_err().to_string();
        let range = text("vm.swappiness", "201");
        assert!(
            range.contains("201") && range.contains("0 to 200"),
            "{range}"
        );
        assert!(check("vm.swappiness", "200").is_ok());
        let group = text("memory.high", "10M");
        assert!(
            group.contains("--limit") && group.contains("--high"),
            "{group}"
        );
    }
}
