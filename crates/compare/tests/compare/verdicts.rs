//! Verdicts on the cells of one campaign.

use pagetide_compare::{Caution, FailOn, Overall, compare_two};
use pagetide_record::{Invalid, Pass};
use pagetide_verdict::{Margin, Verdict};

use super::bench::{Bench, verdict};

#[test]
fn a_faster_variant_is_improved_and_a_slower_one_regressed_with_exit_code_one() {
    let mut bench = Bench::new(2);
    bench.fill(0, 8, 0.8);
    let comparison = bench.compare();
    assert_eq!(verdict(&comparison, 0, "run"), Verdict::Improved);
    assert_eq!(comparison.overall, Overall::Improved);
    assert_eq!(comparison.overall.exit_code(FailOn::default()), 0);
    bench.fill(1, 8, 1.3);
    let comparison = bench.compare();
    assert_eq!(verdict(&comparison, 0, "run"), Verdict::Improved);
    assert_eq!(verdict(&comparison, 1, "run"), Verdict::Regressed);
    assert_eq!(comparison.overall, Overall::Regressed);
    assert_eq!(comparison.overall.exit_code(FailOn::default()), 1);
    // Swapping A and B reverses the verdict.
    let turned = compare_two(&bench.store, "on", "off", false).unwrap();
    assert_eq!(verdict(&turned, 1, "run"), Verdict::Improved);
}

#[test]
fn every_value_leads_back_to_the_record_it_came_from_and_pairs_are_by_seed() {
    let mut bench = Bench::new(1);
    bench.fill(0, 7, 0.9);
    // A seed of only one side is shown but not paired.
    let lone = bench.trial(0, 0, 50, 5e6);
    bench.add(0, 0, lone);
    let comparison = bench.compare();
    let cell = &comparison.cells[0];
    assert_eq!(cell.metrics[0].name, "run", "primary metrics come first");
    for (column, side) in cell.sides.iter().enumerate() {
        assert_eq!(side.trials.len(), 8 - column);
        for &(place, value) in &cell.metrics[0].values[column].values {
            let record = bench.store.load(&side.trials[place].record).unwrap();
            assert_eq!(
                record.record().metric("run").unwrap().value.number(),
                Some(value)
            );
            assert_eq!(record.record().subject.seed, side.trials[place].seed);
        }
    }
    assert_eq!(cell.metrics[0].judgements[0].as_ref().unwrap().n, 7);
}

#[test]
fn records_equal_to_the_bit_are_identical() {
    let mut bench = Bench::new(1);
    for seed in 1..=6 {
        for variant in 0..2 {
            let mut record = bench.trial(0, variant, seed, 1e6 + seed as f64);
            record.subject.variant.settings.clear();
            record.subject.variant.kernel.release = "6.1".into();
            bench.add(0, variant, record);
        }
    }
    // Both variants are the same trial, but each entry of the campaign uses a record of its own variant.
    let comparison = bench.compare();
    for (column, name) in ["off", "on"].into_iter().enumerate() {
        for trial in &comparison.cells[0].sides[column].trials {
            let record = bench.store.load(&trial.record).unwrap();
            assert_eq!(record.record().subject.variant.name, name);
        }
    }
    assert_eq!(verdict(&comparison, 0, "run"), Verdict::Identical);
    assert_eq!(verdict(&comparison, 0, "scanned"), Verdict::Identical);
    assert_eq!(comparison.overall, Overall::Identical);
    assert!(
        comparison
            .cautions
            .iter()
            .all(|c| matches!(c, Caution::VirtualTime))
    );
}

#[test]
fn invalid_trials_are_listed_with_their_reasons_and_left_out() {
    let mut bench = Bench::new(1);
    bench.fill(0, 7, 0.8);
    let mut spoilt = bench.trial(0, 1, 8, 9e9);
    spoilt.results.invalid.push(Invalid::NoReclaim);
    let spoilt = bench.add(0, 1, spoilt);
    let comparison = bench.compare();
    let invalid = &comparison.cells[0].sides[1].invalid;
    assert_eq!(invalid.len(), 1);
    assert_eq!(
        (invalid[0].record.as_str(), invalid[0].seed),
        (spoilt.id().as_str(), 8)
    );
    assert!(
        invalid[0].why.contains("reclaimed nothing"),
        "{}",
        invalid[0].why
    );
    assert_eq!(
        (comparison.columns[1].valid, comparison.columns[1].invalid),
        (7, 1)
    );
    assert_eq!(verdict(&comparison, 0, "run"), Verdict::Improved);
}

#[test]
fn two_seeds_are_inconclusive_with_exit_code_three() {
    let mut bench = Bench::new(1);
    bench.fill(0, 2, 0.8);
    let comparison = bench.compare();
    assert!(matches!(
        verdict(&comparison, 0, "run"),
        Verdict::Inconclusive { .. }
    ));
    assert_eq!(comparison.overall.exit_code(FailOn::default()), 3);
    assert_eq!(comparison.overall.exit_code(FailOn::Regressed), 0);
}

#[test]
fn a_campaign_chooses_its_primary_metrics_and_margins() {
    let mut bench = Bench::new(1);
    bench.note.cells[0].primary = Some(vec!["scanned".into()]);
    bench.note.cells[0].margins = [("run".to_owned(), 0.5)].into();
    bench.fill(0, 8, 1.1);
    let comparison = bench.compare();
    let cell = &comparison.cells[0];
    assert_eq!(cell.metrics[0].name, "scanned");
    assert!(cell.metrics[0].primary && !cell.metrics[1].primary);
    let run = cell.metrics[1].judgements[0].as_ref().unwrap();
    assert_eq!(run.verdict, Verdict::Equivalent);
    assert_eq!(run.margin.as_ref().unwrap().margin, Margin::Relative(0.5));
    assert_eq!(comparison.overall, Overall::Equivalent);
}

#[test]
fn observed_trials_do_not_count() {
    let mut bench = Bench::new(1);
    bench.fill(0, 6, 0.8);
    for variant in 0..2 {
        let mut observed = bench.trial(0, variant, 1, 7e9);
        observed.subject.pass = Pass::Observed;
        bench.add(0, variant, observed);
    }
    let comparison = bench.compare();
    assert_eq!(comparison.columns[0].valid, 6);
    assert_eq!(verdict(&comparison, 0, "run"), Verdict::Improved);
}

#[test]
fn an_observed_pass_without_a_trace_is_left_out_with_one_word_of_why() {
    let mut bench = Bench::new(1);
    bench.fill(0, 6, 0.8);
    // Further repetitions of a seed use the same observed pass.
    for variant in 0..2 {
        let mut again = bench.trial(0, variant, 1, 1.1e6);
        again.wall.repetition = 1;
        bench.add(0, variant, again);
        let mut observed = bench.trial(0, variant, 1, 7e9);
        observed.subject.pass = Pass::Observed;
        bench.add(0, variant, observed);
    }
    let comparison = bench.compare();
    let explained = pagetide_compare::explain::explain(&bench.store, &comparison).unwrap();
    let notes: Vec<&String> = explained.iter().flat_map(|cell| &cell.notes).collect();
    let each_once: std::collections::BTreeSet<_> = notes.iter().collect();
    assert_eq!(each_once.len(), notes.len(), "{notes:?}");
    assert!(!notes.is_empty());
    for note in notes {
        assert!(note.ends_with("the exact arena traced nothing"), "{note}");
    }
}

#[test]
fn a_comparison_is_plain_data() {
    let mut bench = Bench::new(1);
    bench.fill(0, 6, 0.8);
    let json = serde_json::to_value(bench.compare()).unwrap();
    assert_eq!(json["overall"], "improved");
    assert_eq!(json["columns"][1]["name"], "on");
    assert_eq!(
        json["cells"][0]["metrics"][0]["judgements"][0]["verdict"],
        "improved"
    );
}
