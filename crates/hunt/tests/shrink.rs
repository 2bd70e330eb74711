//! Tests that each finding is simplified as far as its fault allows.

use pagetide_hunt::{Budget, Extent, Goal, Guidance, Plan, Workloads, hunt};

use crate::kernel::{FAULTS, Table};

#[test]
fn a_find_is_shrunk_to_what_its_fault_needs() {
    shrinks(&FAULTS[..2]);
}

#[test]
#[ignore = "test-all"]
fn every_find_is_shrunk_to_what_its_fault_needs() {
    shrinks(&FAULTS[2..]);
}

/// Hunts each of these faults, and fails if its smallest case has more than the fault needs.
fn shrinks(faults: &[&'static str]) {
    for &fault in faults {
        let goal = if fault == FAULTS[0] {
            Goal::Killed
        } else {
            Goal::Regressed
        };
        let plan = Plan {
            goal,
            budget: Budget::Trials(12_000),
            seed: 2,
            most: 1,
            guidance: Guidance::Guided,
        };
        let mut table = Table::new(goal, Some(fault), true);
        let space = Workloads::new(Extent::default());
        let account = hunt(&space, &plan, &mut table, &mut |_, _| {}).unwrap();
        let find = &account.found[0];
        let phases: usize = find.case.processes.iter().map(|p| p.phases.len()).sum();
        let words = pagetide_hunt::workloads::label(&find.case);
        assert!(find.is_smallest, "{fault}: {words}");
        assert!(
            find.case.processes.len() <= 3 && phases <= 4,
            "{fault}: {words}"
        );
        assert!(find.seeds.holds >= 6 && find.seeds.tried == 8, "{fault}");
        let settings = &find.case.machine.as_ref().unwrap().settings;
        let needed = match fault {
            "kills-on-two-lists" | "free-is-swapped" | "loops-activate" => vec!["lru_gen/enabled"],
            "swappiness-ignored" => vec!["vm.swappiness"],
            _ => vec![],
        };
        let left: Vec<&str> = settings.keys().map(String::as_str).collect();
        assert_eq!(left, needed, "{fault}: {words}");
    }
}
