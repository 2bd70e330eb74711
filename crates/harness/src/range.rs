//! Ranges of values that the kernel accepts for settings, to refuse a value before a trial runs.

/// Settings with the minimum and the maximum value that a kernel accepts. Sources: kernel `kernel/sysctl.c`,
/// `mm/{vmscan,page_alloc,page-writeback,compaction,util,memory-tiers}.c`, `fs/dcache.c`, `kernel/sched/core.c`. If
/// kernels differ, the widest range is listed; a kernel with a smaller range then refuses the value during the trial.
const RANGES: [(&str, i64, i64); 16] = [
    ("vm.swappiness", 0, 200),
    ("vm.page-cluster", 0, 31),
    ("vm.watermark_scale_factor", 1, 3000),
    ("vm.watermark_boost_factor", 0, NUMBER),
    ("vm.min_free_kbytes", 0, NUMBER),
    ("vm.vfs_cache_pressure", 0, NUMBER),
    ("vm.dirty_ratio", 0, 100),
    ("vm.dirty_background_ratio", 0, 100),
    ("vm.compaction_proactiveness", 0, 100),
    ("vm.compact_unevictable_allowed", 0, 1),
    ("vm.extfrag_threshold", 0, 1000),
    ("vm.overcommit_memory", 0, 2),
    ("vm.overcommit_ratio", 0, NUMBER),
    ("vm.percpu_pagelist_high_fraction", 0, NUMBER),
    ("kernel.numa_balancing", 0, 4),
    ("numa/demotion_enabled", 0, 1),
];

/// Maximum value of a setting that is a C `int` without another limit.
const NUMBER: i64 = i32::MAX as i64;

/// Returns the minimum and the maximum accepted value of a setting if `value` is a number outside of this range. `None`
/// if the kernel may accept the value; the kernel then decides during the trial.
pub fn exceeded(name: &str, value: &str) -> Option<(i64, i64)> {
    let given: i64 = value.trim().parse().ok()?;
    RANGES
        .iter()
        .find(|(known, ..)| *known == name)
        .map(|(_, least, greatest)| (*least, *greatest))
        .filter(|(least, greatest)| !(*least..=*greatest).contains(&given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_outside_of_the_range_is_found() {
        assert_eq!(exceeded("vm.swappiness", "201"), Some((0, 200)));
        assert_eq!(exceeded("vm.swappiness", "-1"), Some((0, 200)));
        assert_eq!(exceeded("vm.swappiness", "200"), None);
        assert_eq!(exceeded("vm.watermark_scale_factor", "0"), Some((1, 3000)));
        assert_eq!(exceeded("vm.unknown", "-5"), None);
        assert_eq!(exceeded("vm.swappiness", "many"), None);
    }

    #[test]
    fn every_range_is_of_a_known_setting() {
        for (name, ..) in RANGES {
            assert!(crate::settings::KNOWN.contains(&name), "{name}");
        }
    }
}
