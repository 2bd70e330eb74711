//! Two sides named on the command line: what is accepted and what is refused.

use pagetide_compare::{Allowance, Caution, CompareError, Overall, compare_two};
use pagetide_store::Filter;
use pagetide_verdict::Verdict;

use super::bench::{Bench, verdict};

#[test]
fn what_cannot_be_compared_is_refused_with_what_differs_unless_anyway() {
    let mut bench = Bench::new(2);
    let a = bench.trial(0, 0, 1, 1e6);
    let mut b = bench.trial(1, 1, 1, 2e6);
    b.subject.memory = "128M".parse().unwrap();
    let a = bench.add(0, 0, a).id();
    let b = bench.add(1, 1, b).id();
    let error = compare_two(&bench.store, &a[..10], &b[..10], false).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, CompareError::NotComparable { .. }),
        "{text}"
    );
    assert!(
        text.contains("parameter pages is 100 against 200, memory is 64M against 128M"),
        "{text}"
    );
    assert!(text.contains("--anyway"), "{text}");
    let comparison = compare_two(&bench.store, &a, &b, true).unwrap();
    assert!(
        matches!(&comparison.cautions[0], Caution::NotComparable { differences, .. } if differences.len() == 2)
    );
    assert!(matches!(
        verdict(&comparison, 0, "run"),
        Verdict::Inconclusive { .. }
    ));
}

#[test]
fn with_anyway_each_cell_goes_with_the_nearest_of_its_own_scenario() {
    let mut bench = Bench::new(3);
    let names = ["linear", "hot-cold", "linear"];
    for seed in 1..=8 {
        for (cell, name) in (0..).zip(names) {
            for variant in 0..2 {
                // The time scales of scenarios differ: if cells were mixed up, values would differ by a factor of ten
                // or more.
                let scale = [1e6, 1e8, 1e10][cell] * (1.0 + 0.01 * seed as f64);
                let scale = scale * [1.0, 0.5][variant];
                let mut record = bench.trial(cell, variant, seed, scale);
                record.subject.scenario = name.into();
                if variant == 1 {
                    // Two additional parameters are a smaller difference than another scenario.
                    for more in ["fill", "page-size"] {
                        record.subject.params.insert(more.into(), "usual".into());
                    }
                }
                bench.add(cell, variant, record);
            }
        }
    }
    // A scenario that only one side has. It differs from the other side in fewer parameters than the common scenarios
    // do.
    let mut lone = bench.trial(0, 0, 1, 1e3);
    lone.subject.scenario = "usemem".into();
    bench.add(0, 0, lone);
    let sides = |anyway| {
        let accepted = vec!["lru_gen/enabled".to_owned()];
        compare_two(&bench.store, "6.0", "6.1", Allowance { anyway, accepted })
    };
    // Kernel releases are compared without a campaign, by the cells that they have in common.
    let of_release = |release: &str| {
        let filter = Filter {
            release: Some(release.into()),
            ..Filter::default()
        };
        bench.store.select(&filter).unwrap().len()
    };
    assert_eq!((of_release("6.0"), of_release("6.1")), (25, 24));
    let text = sides(false).unwrap_err().to_string();
    assert!(
        text.contains("parameter fill is not set against usual"),
        "{text}"
    );
    assert!(!text.contains("scenario"), "{text}");
    let comparison = sides(true).unwrap();
    let mut found: Vec<String> = comparison
        .cells
        .iter()
        .map(|cell| cell.subject.as_ref().unwrap().scenario.clone())
        .collect();
    found.sort_unstable();
    assert_eq!(found, ["hot-cold", "linear", "linear"]);
    for cell in 0..3 {
        assert_eq!(verdict(&comparison, cell, "run"), Verdict::Improved);
    }
    assert!(
        comparison.cautions.iter().any(
            |caution| matches!(caution, Caution::OneSided { label, .. } if label.contains("usemem"))
        ),
        "{:?}",
        comparison.cautions
    );
}

#[test]
fn cells_that_only_one_side_has_are_left_out_and_named() {
    let mut bench = Bench::new(2);
    bench.fill(0, 6, 0.9);
    let lone = bench.trial(1, 0, 1, 1e6);
    bench.add(1, 0, lone);
    let comparison = compare_two(&bench.store, "6.0", "6.1", false).unwrap();
    assert_eq!(comparison.cells.len(), 1);
    assert!(
        comparison
            .cautions
            .iter()
            .any(|c| matches!(c, Caution::OneSided { column, .. } if column == "6.0"))
    );
    // Two releases were named, and a setting also differs, so the result is confounded.
    let found = verdict(&comparison, 0, "run");
    assert!(
        matches!(&found, Verdict::Confounded { by } if by == "lru_gen/enabled 0 against 1"),
        "{found:?}"
    );
}

#[test]
fn sides_are_named_by_variant_campaign_release_or_record() {
    let mut bench = Bench::new(1);
    bench.fill(0, 6, 0.9);
    let id = bench.add(0, 0, bench.trial(0, 0, 7, 1e6)).id();
    let store = &bench.store;
    for (a, b, overall) in [
        ("off", "on", Overall::Improved),
        ("test:off", "test:on", Overall::Improved),
        ("6.0", "6.1", Overall::Confounded),
        ("test:off", "6.1", Overall::Improved),
    ] {
        let comparison = compare_two(store, a, b, false).unwrap();
        assert_eq!(comparison.overall, overall, "{a} {b}");
        let judgement = comparison.deciding().next().unwrap();
        assert_eq!(judgement.n, 6);
    }
    let one = compare_two(store, &id[..8], "on", false).unwrap();
    assert_eq!(one.columns[0].valid, 1);
    let told = |a: &str| compare_two(store, a, "on", false).unwrap_err().to_string();
    assert!(told("of").contains("did you mean `off`?"), "{}", told("of"));
    assert!(
        told("tset:off").contains("did you mean `test`?"),
        "{}",
        told("tset:off")
    );
    assert!(
        told("test:no").contains("it has off, on"),
        "{}",
        told("test:no")
    );
    assert!(told("0123456789abcdef").contains("no record"));
}
