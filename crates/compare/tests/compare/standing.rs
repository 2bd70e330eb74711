//! Campaigns that are incomplete or sequential.

use pagetide_compare::{Caution, CompareError, Comparison, compare_campaign, compare_note};
use pagetide_store::{CampaignNote, Entry};

use super::bench::Bench;

#[test]
fn trials_without_records_are_counted_as_pending() {
    let mut bench = Bench::new(1);
    bench.fill(0, 6, 0.9);
    let planned = bench.trial(0, 1, 7, 1.0).subject.key();
    bench.note.entries.push(Entry {
        key: planned,
        variant: 1,
        unit: 6,
        ..Entry::default()
    });
    bench.store.note(&bench.note).unwrap();
    let comparison = bench.compare();
    assert_eq!(
        (comparison.columns[0].pending, comparison.columns[1].pending),
        (0, 1)
    );
    assert!(
        comparison
            .cautions
            .contains(&Caution::Pending { trials: 1 })
    );
}

#[test]
fn a_sequential_campaign_is_judged_by_its_look_and_not_beyond_it() {
    let mut bench = Bench::new(1);
    bench.note.looks = vec![8, 16];
    bench.fill(0, 8, 0.8);
    let fixed = CampaignNote {
        looks: Vec::new(),
        ..bench.note.clone()
    };
    let fixed = compare_note(&bench.store, &fixed).unwrap();
    let first = bench.compare();
    let p = |comparison: &Comparison| comparison.deciding().next().unwrap().p_adjusted.unwrap();
    assert_eq!(first.look.as_ref().unwrap().units, 8);
    assert!(p(&first) > p(&fixed), "looking has its price");
    // Records after this interim analysis are not used until the next one.
    for seed in 9..=12 {
        bench.add(0, 0, bench.trial(0, 0, seed, 1e6));
        bench.add(0, 1, bench.trial(0, 1, seed, 9e6));
    }
    let between = bench.compare();
    assert_eq!(between.deciding().next().unwrap().n, 8);
    bench.note.looks = vec![20, 40];
    bench.store.note(&bench.note).unwrap();
    assert!(
        bench
            .compare()
            .cautions
            .contains(&Caution::TooEarly { units: 20 })
    );
}

#[test]
fn a_campaign_of_one_variant_and_a_store_without_campaigns_are_refused() {
    let mut bench = Bench::new(1);
    assert!(matches!(
        compare_campaign(&bench.store, None),
        Err(CompareError::NothingRan)
    ));
    bench.fill(0, 1, 1.0);
    bench.note.variants.pop();
    bench.store.note(&bench.note).unwrap();
    let error = compare_campaign(&bench.store, Some("test")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "campaign test has a single variant, off: add another to compare it with"
    );
}
