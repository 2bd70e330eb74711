//! History of a metric over kernels and over dates.

use pagetide_compare::history::{Order, history};
use pagetide_store::Filter;

use super::bench::Bench;

#[test]
fn a_history_finds_the_kernel_from_which_on_a_metric_is_slower() {
    let mut bench = Bench::new(1);
    // The order of recording differs from the order of the versions.
    for (release, factor) in [
        ("6.12", 1.0),
        ("6.2", 1.0),
        ("7.2", 1.2),
        ("7.1", 1.2),
        ("6.6", 1.0),
        ("6.18", 1.0),
        ("7.4", 1.2),
        ("7.3", 1.2),
    ] {
        for seed in 1..=6_u64 {
            let base = 1e6 * seed as f64;
            let noise = 1.0 + 0.001 * ((seed * 5) % 7) as f64;
            let mut record = bench.trial(0, 0, seed, base * factor * noise);
            record.subject.variant.kernel.release = release.into();
            bench.add(0, 0, record);
        }
    }
    let scenario = Filter {
        scenario: Some("linear".into()),
        ..Filter::default()
    };
    let found = history(&bench.store, "run", &scenario, Order::Kernels).unwrap();
    let cell = &found.cells[0];
    assert_eq!(
        (found.cells.len(), cell.values.len(), cell.left_out),
        (1, 48, 0)
    );
    assert_eq!(cell.changes.len(), 1, "{:?}", cell.changes);
    let change = cell.changes[0];
    assert_eq!(cell.values[change.at].release, "7.1");
    assert_eq!(cell.values[change.at - 1].release, "6.18");
    assert_eq!(cell.points, 8);
    assert!(
        change.is_ratio && (change.effect - 1.2).abs() < 0.01,
        "{change:?}"
    );
    let none = history(&bench.store, "nothing", &scenario, Order::Dates).unwrap_err();
    assert_eq!(
        none.to_string(),
        "metric nothing has no records yet: run its campaign"
    );
}

#[test]
fn by_dates_a_history_separates_variants_and_groups_sessions() {
    let mut bench = Bench::new(1);
    // Two sessions several hours apart, in each of which the variants alternate.
    for session in 0..2_u64 {
        for seed in 1..=6_u64 {
            for variant in 0..2 {
                let time = 1e6 * (1.0 + variant as f64) + 1e5 * session as f64 + seed as f64;
                bench.moment += if seed == 1 && variant == 0 {
                    7_200_000_000_000
                } else {
                    1_000_000_000
                };
                let record = bench.trial(0, variant, seed, time);
                bench.add(0, variant, record);
            }
        }
    }
    let found = history(&bench.store, "run", &Filter::default(), Order::Dates).unwrap();
    assert_eq!(found.cells.len(), 2);
    for (cell, name) in found.cells.iter().zip(["off", "on"]) {
        assert!(cell.label.ends_with(name), "{}", cell.label);
        let stretches = cell.stretches();
        assert_eq!((stretches.len(), cell.points), (2, 2));
        assert!(stretches.iter().all(|s| s.variant == name && s.values == 6));
        assert!(stretches[1].started.0 - stretches[0].started.0 > 7_200_000_000_000);
    }
    // In the order of kernels, all variants of a cell are in one table.
    let found = history(&bench.store, "run", &Filter::default(), Order::Kernels).unwrap();
    assert_eq!(found.cells.len(), 1);
}
