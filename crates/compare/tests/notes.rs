//! Tests of notes on the verdicts: other differences, settings that cannot act, trials that ran out of memory.

use pagetide_compare::notes::Comparability;
use pagetide_compare::{
    Allowance, Comparison, FailOn, Names, Overall, compare_campaign, compare_two,
};
use pagetide_quantity::{Bytes, Metric, MetricDef, Nanos};
use pagetide_record::{Counters, Invalid, MemoryAtKill, Record};
use pagetide_store::{CampaignNote, CellNote, Entry, Store};
use pagetide_verdict::Verdict;

const TIME: MetricDef = MetricDef::time("run", "whole run").primary();

/// Stores a campaign of two variants with eight seeds each. Trials of the second variant take four fifths of the time
/// of the first. `change` is called with the variant, the seed and the record of each trial.
fn campaign(store: &mut Store, accept: &[&str], change: &dyn Fn(usize, u64, &mut Record)) {
    let mut note = CampaignNote {
        name: "test".into(),
        generation: 1,
        variants: vec!["old".into(), "new".into()],
        cells: vec![CellNote::default()],
        accept: accept.iter().map(ToString::to_string).collect(),
        ..CampaignNote::default()
    };
    for seed in 1..=8 {
        for variant in 0..2 {
            let mut record = Record::default();
            record.subject.scenario = "swapbench".into();
            record.subject.seed = seed;
            record
                .subject
                .variant
                .name
                .clone_from(&note.variants[variant]);
            let kernel = &mut record.subject.variant.kernel;
            kernel.release = format!("6.{variant}");
            kernel.digest = format!("digest {variant}");
            let read = [
                ("thp/enabled", "always madvise [never]"),
                ("vm.dirty_ratio", "20"),
            ];
            let read = read.map(|(name, value)| (name.to_owned(), value.to_owned()));
            record.results.settings.extend(read);
            let time = 1e6 * (1.0 + 0.01 * seed as f64) * [1.0, 0.8][variant];
            record.results.metrics = vec![Metric::new(&TIME, time)];
            change(variant, seed, &mut record);
            record.wall.started = Nanos(2 * seed + variant as u64);
            record.wall.campaign = note.id();
            note.entries.push(Entry {
                key: record.subject.key(),
                cell: 0,
                variant,
                unit: u32::try_from(seed).unwrap() - 1,
                repetition: 0,
            });
            let writer = store.writer().unwrap();
            store.add(writer, &mut record).unwrap();
        }
    }
    store.note(&note).unwrap();
}

fn compared(
    accept: &[&str],
    change: &dyn Fn(usize, u64, &mut Record),
) -> (tempfile::TempDir, Store, Comparison) {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    campaign(&mut store, accept, change);
    let comparison = compare_campaign(&store, None).unwrap();
    (dir, store, comparison)
}

fn huge_pages(variant: usize, _: u64, record: &mut Record) {
    if variant == 1 {
        let state = "[always] madvise never".to_owned();
        record.results.settings.insert("thp/enabled".into(), state);
    }
}

/// Adds counters of huge pages for a workload that received `got` huge pages.
fn counted(record: &mut Record, got: u64) {
    let mut counters = Counters::default();
    counters.values.insert("thp_fault_alloc".into(), [0, got]);
    record.results.counters.insert("vmstat".into(), counters);
}

#[test]
fn a_claim_between_kernels_whose_huge_pages_differ_is_confounded_until_it_is_accepted() {
    let (_dir, store, comparison) = compared(&[], &huge_pages);
    assert_eq!(comparison.overall, Overall::Confounded);
    assert_eq!(comparison.overall.exit_code(FailOn::default()), 3);
    let judgement = comparison.deciding().next().unwrap();
    assert!(
        matches!(&judgement.verdict, Verdict::Confounded { by } if by == "thp/enabled never against always")
    );
    assert!(judgement.effect.is_some(), "the estimate stays");
    for words in ["huge-pages", "thp/enabled"] {
        let accepted = [words.to_owned()];
        let names = Names {
            allowed: Allowance {
                anyway: false,
                accepted: accepted.to_vec(),
            },
            ..Names::default()
        };
        let comparison = names.compare(&store).unwrap();
        assert_eq!(comparison.overall, Overall::Improved);
        assert_eq!(
            comparison.notes[0].also[0].standing,
            Comparability::Accepted
        );
        let allowed = Allowance {
            anyway: false,
            accepted: accepted.to_vec(),
        };
        let comparison = compare_two(&store, "old", "new", allowed).unwrap();
        assert_eq!(comparison.overall, Overall::Improved);
    }
    let (_dir, _store, comparison) = compared(&["huge-pages"], &huge_pages);
    assert_eq!(
        comparison.overall,
        Overall::Improved,
        "the campaign accepts it"
    );
}

#[test]
fn huge_pages_that_a_workload_advises_against_confound_nothing_as_long_as_it_gets_none() {
    for (got, overall) in [(0, Overall::Improved), (9, Overall::Confounded)] {
        let (_dir, _store, comparison) = compared(&[], &|variant, seed, record| {
            huge_pages(variant, seed, record);
            counted(record, got);
        });
        assert_eq!(comparison.overall, overall, "{got} huge pages");
    }
}

#[test]
fn equal_circumstances_and_unknown_ones_confound_nothing() {
    let (_dir, _store, comparison) = compared(&[], &|_, _, _| {});
    assert_eq!(comparison.overall, Overall::Improved);
    assert_eq!(comparison.notes[0].also, []);
    let (_dir, _store, comparison) = compared(&[], &|_, _, record| record.results.settings.clear());
    assert_eq!(comparison.overall, Overall::Improved);
    assert!(comparison.notes[0].unknown.contains(&"huge pages"));
}

#[test]
fn a_setting_that_cannot_act_is_named_in_the_verdict() {
    let (_dir, _store, comparison) = compared(&[], &|variant, _, record| {
        let settings = &mut record.subject.variant.settings;
        settings.insert(
            "vm.vfs_cache_pressure".into(),
            (100 * (variant + 1)).to_string(),
        );
        settings.insert("vm.page-cluster".into(), variant.to_string());
    });
    let inert = &comparison.notes[0].inert;
    assert_eq!(inert.len(), 1, "{inert:?}");
    assert_eq!(inert[0].setting, "vm.vfs_cache_pressure");
    assert_eq!(inert[0].why, "the workload uses no files");
}

/// Returns a change that makes the trials of one side run out of memory, for the first `seeds` seeds.
fn dying(side: usize, seeds: u64) -> impl Fn(usize, u64, &mut Record) {
    move |variant, seed, record| {
        if variant == side && seed <= seeds {
            record.results.metrics.clear();
            record.results.invalid.push(Invalid::OutOfMemory {
                process: "init".to_owned(),
                after: Nanos(5),
            });
        }
    }
}

#[test]
fn a_side_that_dies_is_a_verdict_and_decides() {
    let (_dir, _store, comparison) = compared(&[], &dying(0, 8));
    let deaths = comparison.notes[0].deaths.as_ref().unwrap();
    assert_eq!((deaths.died, deaths.trials), ([8, 0], [8, 8]));
    assert_eq!(deaths.verdict, Verdict::Improved);
    assert_eq!(comparison.overall, Overall::Improved);
    let (_dir, _store, comparison) = compared(&[], &dying(1, 8));
    assert_eq!(comparison.overall, Overall::Regressed);
    assert_eq!(comparison.overall.exit_code(FailOn::default()), 1);
}

#[test]
fn both_sides_dying_alike_or_one_trial_of_eight_decides_nothing() {
    let (_dir, _store, comparison) = compared(&[], &dying(1, 1));
    let deaths = comparison.notes[0].deaths.as_ref().unwrap();
    assert!(matches!(deaths.verdict, Verdict::Inconclusive { .. }));
    let (_dir, _store, comparison) = compared(&[], &|variant, seed, record| {
        dying(variant, 8)(variant, seed, record);
    });
    assert_eq!(comparison.overall, Overall::Inconclusive);
    let deaths = comparison.notes[0].deaths.as_ref().unwrap();
    assert_eq!((deaths.died, deaths.trials), ([8, 8], [8, 8]));
}

#[test]
fn a_trial_that_is_invalid_for_another_reason_is_no_death_and_no_trial_of_the_test() {
    let (_dir, _store, comparison) = compared(&[], &|variant, seed, record| {
        dying(1, 6)(variant, seed, record);
        if variant == 0 && seed <= 3 {
            record.results.metrics.clear();
            record.results.invalid.push(Invalid::NoReclaim);
        }
    });
    let deaths = comparison.notes[0].deaths.as_ref().unwrap();
    assert_eq!((deaths.died, deaths.trials), ([0, 6], [5, 8]));
    assert_eq!(deaths.verdict, Verdict::Regressed, "{deaths:?}");
    let marked = |side: usize| {
        let invalid = &comparison.cells[0].sides[side].invalid;
        invalid.iter().filter(|trial| trial.died).count()
    };
    assert_eq!((marked(0), marked(1)), (0, 6));
    // If all trials of the baseline are invalid for another reason, there is no verdict on deaths.
    let (_dir, _store, comparison) = compared(&[], &|variant, seed, record| {
        dying(1, 8)(variant, seed, record);
        if variant == 0 {
            record.results.metrics.clear();
            record.results.invalid.push(Invalid::NoReclaim);
        }
    });
    let deaths = comparison.notes[0].deaths.as_ref().unwrap();
    assert_eq!((deaths.died, deaths.trials), ([0, 8], [0, 8]));
    assert!(matches!(deaths.verdict, Verdict::Inconclusive { .. }));
    assert_eq!(comparison.overall.exit_code(FailOn::default()), 3);
}

#[test]
fn kills_with_memory_to_spare_are_deaths_and_are_counted_beside_the_others() {
    let memory = MemoryAtKill {
        file: Bytes::from_mib(7),
        dirty: Bytes::from_mib(3),
        writeback: Bytes::from_mib(4),
        ..MemoryAtKill::default()
    };
    let (_dir, _store, comparison) = compared(&[], &|variant, seed, record| {
        if variant == 1 {
            record.results.metrics.clear();
            record.results.invalid.push(if seed <= 5 {
                Invalid::GaveUp {
                    process: "dd".to_owned(),
                    after: Nanos(5),
                    memory: memory.clone(),
                }
            } else {
                Invalid::OutOfMemory {
                    process: "dd".to_owned(),
                    after: Nanos(5),
                }
            });
        }
    });
    let deaths = comparison.notes[0].deaths.as_ref().unwrap();
    assert_eq!((deaths.died, deaths.early), ([0, 8], [0, 5]));
    assert_eq!(comparison.overall, Overall::Regressed);
    let why = &comparison.cells[0].sides[1].invalid[0].why;
    assert!(
        why.contains("7 MiB of file pages reclaimable (3 MiB dirty"),
        "{why}"
    );
}

#[test]
fn records_whose_files_are_gone_are_judged_by_the_index_and_said_to_tell_nothing() {
    let (dir, store, _) = compared(&[], &huge_pages);
    for entry in walk(&dir.path().join("records")) {
        std::fs::write(entry, "rot").unwrap();
    }
    let comparison = compare_campaign(&store, None).unwrap();
    assert_eq!(comparison.overall, Overall::Improved);
    assert_eq!(
        comparison.notes[0].unknown.len(),
        1,
        "{:?}",
        comparison.notes
    );
}

/// Returns all files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
