//! Tests of the comparison of kinds of swap: differences caused by the kind are not confounding, and the front has only
//! kinds that no other kind beats.

use pagetide_compare::kinds::CostKind;
use pagetide_compare::notes::Comparability;
use pagetide_compare::{Comparison, compare_campaign, compare_two};
use pagetide_quantity::{Direction, Metric, MetricDef, Nanos, Unit};
use pagetide_record::{Invalid, Record};
use pagetide_store::{CampaignNote, CellNote, Entry, Store};

const TIME: MetricDef = MetricDef::time("run", "whole run").primary();
const WRITTEN: MetricDef = MetricDef::of("swap-written", Unit::Bytes, Direction::Lower, "");
const MEMORY: MetricDef = MetricDef::of("swap-memory", Unit::Bytes, Direction::Lower, "");

/// Name, kind and device of swap, and means of time, bytes written and memory held. A time of `None` means that all
/// trials die.
type Planted = (
    &'static str,
    &'static str,
    &'static str,
    Option<f64>,
    f64,
    f64,
);

const PLANTED: [Planted; 5] = [
    ("ssd", "ssd", "nullb0", Some(1.0), 20e6, 0.0),
    ("zram", "zram", "zram0", Some(0.5), 0.0, 8e6),
    ("zswap", "zswap", "nullb0", Some(0.8), 2e6, 4e6),
    ("disk", "disk", "nbd0", Some(9.0), 20e6, 0.0),
    ("none", "none", "", None, 0.0, 0.0),
];

fn compared(change: &dyn Fn(&str, &mut Record)) -> (tempfile::TempDir, Store, Comparison) {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let mut note = CampaignNote {
        name: "test".into(),
        generation: 1,
        variants: PLANTED.map(|(name, ..)| name.to_owned()).to_vec(),
        cells: vec![CellNote::default()],
        ..CampaignNote::default()
    };
    for seed in 1..=8_u32 {
        for (variant, (name, kind, device, time, written, memory)) in
            PLANTED.into_iter().enumerate()
        {
            let mut record = Record::default();
            let subject = &mut record.subject;
            subject.scenario = "swapbench".into();
            subject.seed = u64::from(seed);
            subject.variant.name = name.into();
            subject.variant.kernel.digest = "one kernel".into();
            subject.swap = kind.parse().unwrap();
            let results = &mut record.results;
            let zswap = if kind == "zswap" { "Y" } else { "N" };
            for (setting, value) in [("zswap/enabled", zswap), ("thp/enabled", "[never]")] {
                results.settings.insert(setting.into(), value.into());
            }
            results
                .facts
                .insert("free-at-start".into(), "16777216".into());
            let swaps =
                format!("Filename Type Size Used Priority\n/dev/{device} partition 65532 0 -2\n");
            let swaps = if device.is_empty() {
                String::new()
            } else {
                swaps
            };
            results.texts.insert("swaps-before".into(), swaps);
            let own = 1.0 + 0.01 * f64::from(seed);
            match time {
                Some(time) => {
                    results.metrics = vec![
                        Metric::new(&TIME, 1e9 * time * own),
                        Metric::new(&WRITTEN, written * own),
                        Metric::new(&MEMORY, memory * own),
                    ];
                }
                None => results.invalid.push(Invalid::OutOfMemory {
                    process: "swapbench".into(),
                    after: Nanos::from_secs(1),
                }),
            }
            change(name, &mut record);
            record.wall.started = Nanos(u64::from(seed) * 10 + variant as u64);
            record.wall.campaign = note.id();
            note.entries.push(Entry {
                key: record.subject.key(),
                cell: 0,
                variant,
                unit: seed - 1,
                repetition: 0,
            });
            let writer = store.writer().unwrap();
            store.add(writer, &mut record).unwrap();
        }
    }
    store.note(&note).unwrap();
    let comparison = compare_campaign(&store, None).unwrap();
    (dir, store, comparison)
}

#[test]
fn each_kind_has_verdicts_and_those_that_no_other_beats_are_on_the_front() {
    let (_dir, _store, comparison) = compared(&|_, _| {});
    let kinds = &comparison.kinds[0];
    let front: Vec<bool> = kinds.kinds.iter().map(|kind| kind.is_on_front).collect();
    assert_eq!(front, [true, true, true, false, false]);
    assert_eq!(
        kinds.kinds[3].dominated_by,
        [0],
        "a disk is slower than an ssd, else alike"
    );
    assert_eq!(kinds.kinds[4].dominated_by, [0, 1, 2, 3], "it died");
    assert_eq!((kinds.kinds[4].died, kinds.kinds[4].trials), (8, 8));
    assert_eq!(
        kinds.kinds[4].deaths.as_ref().unwrap().to_string(),
        "regressed"
    );
    assert_eq!(kinds.best(CostKind::Time), [1]);
    assert_eq!(kinds.best(CostKind::Written), [1]);
    assert_eq!(kinds.best(CostKind::Memory), [0]);
    let verdict = |kind: usize, of: CostKind| {
        let cost = kinds.kinds[kind].cost(of).unwrap();
        cost.verdict
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    assert_eq!(
        verdict(0, CostKind::Time),
        "",
        "the baseline is not judged against itself"
    );
    assert_eq!(verdict(1, CostKind::Time), "improved");
    assert_eq!(verdict(2, CostKind::Written), "improved");
    assert_eq!(verdict(1, CostKind::Memory), "regressed");
    assert_eq!(verdict(3, CostKind::Time), "regressed");
    // The user asked for different swap, so differences in devices, zswap and its settings are not reported.
    let swap = |also: &&pagetide_compare::notes::OtherDifference| also.what.contains("swap");
    let also = comparison.notes.iter().flat_map(|notes| &notes.also);
    assert_eq!(also.filter(swap).count(), 0, "{:?}", comparison.notes);
    assert_eq!(comparison.columns[1].swap, "swap=zram");
}

#[test]
fn less_memory_under_one_kind_still_confounds() {
    let (_dir, _store, comparison) = compared(&|name, record| {
        if name == "zram" {
            let fact = ("free-at-start".to_owned(), "12777216".to_owned());
            record.results.facts.extend([fact]);
        }
    });
    let zram = comparison.column_notes(0, 1).unwrap();
    let found = zram
        .also
        .iter()
        .find(|also| also.what == "memory free at the start");
    assert_eq!(found.unwrap().standing, Comparability::Confounds);
}

#[test]
fn two_records_of_other_kinds_are_refused_with_how_to_compare_them() {
    let (_dir, store, comparison) = compared(&|_, _| {});
    let id = |column: usize| comparison.cells[0].sides[column].trials[0].record.clone();
    let why = compare_two(&store, &id(0), &id(1), false)
        .unwrap_err()
        .to_string();
    assert!(why.contains("swap is ssd:80us against zram"), "{why}");
    assert!(
        why.contains("--vs swap=KIND") && why.contains("--anyway"),
        "{why}"
    );
    // Variants of one campaign can be compared without further options.
    assert!(compare_two(&store, "ssd", "zram", false).is_ok());
}
