//! Rows and columns that appear twice in a table but are judged once.

use pagetide_compare::{Comparison, MetricRow};
use pagetide_quantity::{Metric, MetricDef};
use pagetide_verdict::Verdict;
use pagetide_verdict::judgement::Note;

use super::bench::Bench;

const TIME: MetricDef = MetricDef::time("access-time", "all accesses").primary();
const MEAN: MetricDef = MetricDef::time("access-mean", "mean access");

fn row<'a>(comparison: &'a Comparison, name: &str) -> &'a MetricRow {
    let mut rows = comparison.cells[0].metrics.iter();
    rows.find(|row| row.name == name).unwrap()
}

/// A campaign of seven seeds in which `on` takes 2.24 times as long as `off`, with additional metrics that do not
/// surely differ.
fn slower(mean_of: fn(f64) -> f64, decides: bool) -> Comparison {
    let mut bench = Bench::new(1);
    for seed in 1..=7_u64 {
        let base = 1e6 * (1.0 + 0.1 * (seed * 7 % 5) as f64);
        for (variant, factor) in [(0, 1.0), (1, 2.24 + 0.001 * (seed * 3 % 7) as f64)] {
            let mut record = bench.trial(0, variant, seed, base);
            let time = base * factor;
            let mean = if decides { MEAN.primary() } else { MEAN };
            record.results.metrics = vec![
                Metric::new(
                    &if decides {
                        MetricDef::time("access-time", "")
                    } else {
                        TIME
                    },
                    time,
                ),
                Metric::new(&mean, mean_of(time)),
            ];
            for other in 0..12_u64 {
                let name: &'static str = Box::leak(format!("other-{other}").into_boxed_str());
                let value =
                    1e5 + ((seed * 31 + other * 17 + variant as u64 * 13) % 23) as f64 * 100.0;
                let def = MetricDef::time(name, "");
                record.results.metrics.push(Metric::new(&def, value));
            }
            bench.add(0, variant, record);
        }
    }
    bench.compare()
}

#[test]
fn a_metric_that_is_a_multiple_of_a_judged_one_has_its_verdict_and_costs_nothing() {
    let comparison = slower(|time| time / 24_000.0, false);
    let [time, mean] = ["access-time", "access-mean"]
        .map(|name| row(&comparison, name).judgements[0].clone().unwrap());
    assert_eq!(time.verdict, Verdict::Regressed);
    assert_eq!(mean.verdict, Verdict::Regressed);
    assert_eq!(
        (mean.effect, mean.p_adjusted),
        (time.effect, time.p_adjusted)
    );
    assert!(!mean.primary && mean.name == "access-mean");
    let told = Note::MultipleOf {
        metric: "access-time".into(),
    };
    assert_eq!(mean.notes, [told]);
    let values = row(&comparison, "access-mean").values[1].numbers();
    let median = mean.b.unwrap().median;
    assert!((median / pagetide_verdict::number::median(&values).unwrap() - 1.0).abs() < 1e-12);
    // The other metrics are judged as if this metric did not exist.
    let alone = slower(|_| f64::NAN, false);
    for name in ["other-0", "other-7", "other-11"] {
        let p = |comparison: &Comparison| {
            row(comparison, name).judgements[0]
                .clone()
                .unwrap()
                .p_adjusted
        };
        assert_eq!(p(&comparison), p(&alone), "{name}");
    }
}

#[test]
fn the_primary_one_of_two_multiples_is_judged() {
    let comparison = slower(|time| time / 24_000.0, true);
    let time = row(&comparison, "access-time").judgements[0]
        .clone()
        .unwrap();
    assert_eq!(time.verdict, Verdict::Regressed);
    assert!(!time.primary);
    let told = Note::MultipleOf {
        metric: "access-mean".into(),
    };
    assert_eq!(time.notes, [told]);
}

#[test]
fn values_that_are_no_multiple_are_judged_independently_of_their_name() {
    let comparison = slower(f64::sqrt, false);
    let mean = row(&comparison, "access-mean").judgements[0]
        .clone()
        .unwrap();
    assert!(
        !mean
            .notes
            .iter()
            .any(|note| matches!(note, Note::MultipleOf { .. }))
    );
    assert!((mean.effect.unwrap().estimate - 2.24_f64.sqrt()).abs() < 0.01);
}

/// A campaign of three variants. The second and the third are identical, except for one seed if `apart`.
fn three(apart: bool) -> (Bench, Comparison) {
    let mut bench = Bench::new(1);
    bench.note.variants.push("also-on".into());
    for seed in 1..=8_u64 {
        let base = 1e6 * (1.0 + 0.1 * (seed * 7 % 5) as f64);
        for (variant, factor) in [(0, 1.0), (1, 0.8), (2, 0.8)] {
            let other = if apart && variant == 2 && seed == 5 {
                1.0
            } else {
                0.0
            };
            let time = base * factor * (1.0 + 0.001 * (seed * 3 % 7) as f64) + other;
            let record = bench.trial(0, variant, seed, time);
            bench.add(0, variant, record);
        }
    }
    let comparison = bench.compare();
    (bench, comparison)
}

#[test]
fn a_variant_whose_every_trial_is_identical_to_anothers_is_its_twin_and_costs_nothing() {
    let (mut bench, comparison) = three(false);
    let cell = &comparison.cells[0];
    assert_eq!(
        [0, 1, 2].map(|column| cell.twin(column)),
        [None, None, Some(1)]
    );
    let judgements = &row(&comparison, "run").judgements;
    assert_eq!(judgements[0], judgements[1]);
    // The judgements are the same as without the third variant.
    bench.note.variants.pop();
    bench.note.entries.retain(|entry| entry.variant < 2);
    bench.store.note(&bench.note).unwrap();
    let two = bench.compare();
    assert_eq!(row(&two, "run").judgements[0], judgements[0]);
    let (_, apart) = three(true);
    assert_eq!(apart.cells[0].twin(2), None);
}
