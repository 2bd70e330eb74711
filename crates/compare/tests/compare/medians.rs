//! Campaigns with a single variant, and records that are superseded.

use pagetide_compare::{FailOn, compare_campaign, medians, show_campaign};
use pagetide_record::Invalid;

use super::bench::Bench;

fn killed() -> Invalid {
    Invalid::EmulatorDied {
        how: "signal 9".into(),
    }
}

#[test]
fn a_trial_repeated_after_an_accident_hides_the_accident_from_the_results() {
    let mut bench = Bench::new(1);
    bench.note.variants.pop();
    for seed in 1..=4 {
        let trial = bench.trial(0, 0, seed, 1e6 + seed as f64);
        if seed == 2 {
            let mut dead = trial.clone();
            dead.results.invalid.push(killed());
            bench.add(0, 0, dead);
            // The plan contains each trial once, even if it ran several times.
            bench.note.entries.pop();
        }
        bench.add(0, 0, trial);
    }
    let (medians, invalid) = medians(&bench.store, &bench.note).unwrap();
    assert_eq!(invalid, []);
    assert_eq!(medians[0].seeds, 4);
    let shown = show_campaign(&bench.store, None).unwrap();
    assert_eq!(shown.columns[0].invalid, 0);
    assert_eq!(shown.exit_code(FailOn::default()), 0);
}

#[test]
fn if_no_run_succeeded_the_accident_is_reported_once() {
    let mut bench = Bench::new(1);
    bench.note.variants.pop();
    for _ in 0..3 {
        let mut dead = bench.trial(0, 0, 1, 1e6);
        dead.results.invalid.push(killed());
        bench.add(0, 0, dead);
        bench.note.entries.truncate(1);
    }
    bench.store.note(&bench.note).unwrap();
    let (medians, invalid) = medians(&bench.store, &bench.note).unwrap();
    assert_eq!((medians.len(), invalid.len()), (0, 1));
    assert!(invalid[0].why.contains("signal 9"));
}

#[test]
fn records_of_before_a_fresh_run_are_not_counted_again() {
    let mut bench = Bench::new(1);
    bench.note.variants.pop();
    bench.add(0, 0, bench.trial(0, 0, 1, 1e6));
    bench.note.generation = 2;
    bench.note.fresh = true;
    bench.note.entries.clear();
    bench.add(0, 0, bench.trial(0, 0, 1, 2e6));
    let (medians, _) = medians(&bench.store, &bench.note).unwrap();
    assert_eq!((medians[0].seeds, medians[0].median), (1, 2e6));
}

#[test]
fn an_accident_of_one_of_two_variants_decides_nothing_once_it_was_repeated() {
    let mut bench = Bench::new(1);
    bench.fill(0, 8, 0.8);
    let mut dead = bench.trial(0, 1, 3, 1e6);
    dead.results.invalid.push(killed());
    bench.add(0, 1, dead);
    bench.note.entries.pop();
    bench.store.note(&bench.note).unwrap();
    let comparison = compare_campaign(&bench.store, None).unwrap();
    assert_eq!(comparison.exit_code(FailOn::default()), 0);
    assert_eq!(comparison.columns[1].invalid, 0);
}
