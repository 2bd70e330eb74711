//! Comparisons in noisy arenas, and of the tails of distributions.

use pagetide_compare::{Caution, compare_two, tails};
use pagetide_quantity::Histogram;
use pagetide_record::ArenaKind;
use pagetide_verdict::Verdict;

use super::bench::Bench;

#[test]
fn with_noise_the_boot_is_the_sampling_unit() {
    let mut bench = Bench::new(1);
    bench.note.arena = ArenaKind::Vm;
    for unit in 1..=7_u32 {
        for repetition in 0..4 {
            for variant in 0..2 {
                let seed = u64::from(4 * unit + repetition);
                let time =
                    1e6 * (1.0 + 0.01 * f64::from(unit)) * if variant == 1 { 0.9 } else { 1.0 };
                let mut record = bench.trial(0, variant, seed, time + f64::from(repetition));
                record.subject.arena.kind = ArenaKind::Vm;
                record.wall.unit = unit;
                record.wall.repetition = repetition;
                bench.add(0, variant, record);
            }
        }
    }
    let comparison = bench.compare();
    let judgement = comparison.deciding().next().unwrap();
    assert_eq!(judgement.n, 7, "units, not repetitions");
    assert!(judgement.components.is_some());
    assert_eq!(judgement.verdict, Verdict::Improved);
}

#[test]
fn tails_are_compared_by_the_histograms_of_all_trials() {
    let mut bench = Bench::new(1);
    for seed in 1..=14_u64 {
        for variant in 0..2 {
            let mut record = bench.trial(0, variant, seed, 1e6);
            // Both variants have 20,000 accesses of about 1 µs and 400 slow ones. The slow accesses of `on` take 1.5
            // times as long.
            let mut dense = vec![0; Histogram::BUCKETS];
            for n in 0..20_000_u64 {
                dense[Histogram::index(1000 + n % 200 + seed) as usize] += 1;
            }
            for n in 0..400 {
                let slow = 80_000 + 100 * n + seed * 500;
                dense[Histogram::index(if variant == 1 { slow * 3 / 2 } else { slow }) as usize] +=
                    1;
            }
            let histogram = Histogram::from_dense(&dense, 1, 1000, 200_000);
            record.results.histograms.insert("access".into(), histogram);
            bench.add(0, variant, record);
        }
    }
    let comparison = bench.compare();
    let tails = tails(&bench.store, &comparison).unwrap();
    assert_eq!(tails.len(), 1);
    assert_eq!((tails[0].cell, tails[0].column), (0, 1));
    let of = |name: &str| {
        let found = tails[0].judgements.iter().find(|j| j.name == name);
        found.unwrap()
    };
    assert_eq!(of("access-p99").verdict, Verdict::Regressed);
    let slower = of("access-p99").effect.unwrap().estimate;
    assert!((slower - 1.5).abs() < 0.1, "{slower}");
    assert_eq!(of("access-p50").shift, None);
}

#[test]
fn with_noise_tails_are_paired_by_block() {
    let mut bench = Bench::new(1);
    bench.note.arena = ArenaKind::Vm;
    for unit in 1..=8_u32 {
        for repetition in 0..2 {
            for variant in 0..2_u32 {
                let seed = u64::from(4 * unit + repetition);
                let place = usize::try_from(variant).unwrap();
                let mut record = bench.trial(0, place, seed, 1e6);
                // Blocks differ by up to a third. Within each block, `on` is 3 % slower.
                let level = (10_000 + 500 * u64::from(unit)) * (100 + 3 * u64::from(variant)) / 100;
                let mut dense = vec![0; Histogram::BUCKETS];
                for n in 0..1_000 {
                    let value = level + level * u64::from(n + repetition) / 1_000;
                    dense[Histogram::index(value) as usize] += 1;
                }
                let histogram = Histogram::from_dense(&dense, 1, 1000, 1 << 20);
                record.results.histograms.insert("access".into(), histogram);
                record.subject.arena.kind = ArenaKind::Vm;
                record.wall.unit = unit;
                record.wall.repetition = repetition;
                bench.add(0, place, record);
            }
        }
    }
    // The campaign is named once by its name, and once by the names of two of its variants.
    let [off, on] = ["off", "on"].map(|variant| format!("{}:{variant}", bench.note.name));
    let columns = compare_two(&bench.store, &off, &on, false).unwrap();
    for comparison in [bench.compare(), columns] {
        assert!(
            !comparison
                .cautions
                .iter()
                .any(|c| matches!(c, Caution::Apart { .. }))
        );
        assert_eq!(comparison.deciding().next().unwrap().n_b, None);
        let tails = tails(&bench.store, &comparison).unwrap();
        let p50 = tails[0].judgements.iter().find(|j| j.name == "access-p50");
        let p50 = p50.unwrap();
        assert_eq!((p50.n, p50.n_b), (8, None), "blocks, not repetitions");
        let interval = p50.effect.unwrap().interval.unwrap();
        assert!(interval.low > 1.0 && interval.high < 1.06, "{interval:?}");
    }
}

#[test]
fn noisy_results_of_two_campaigns_are_compared_with_a_caution() {
    let mut bench = Bench::new(1);
    bench.note.arena = ArenaKind::Vm;
    for name in ["before", "after"] {
        bench.note.name = name.into();
        bench.note.entries.clear();
        for unit in 1..=6_u32 {
            let mut record = bench.trial(0, 0, u64::from(unit), 1e6 + f64::from(unit * 7 % 5));
            record.subject.arena.kind = ArenaKind::Vm;
            record.wall.unit = unit;
            bench.add(0, 0, record);
        }
    }
    let comparison = compare_two(&bench.store, "before:off", "after:off", false).unwrap();
    assert!(
        comparison.cautions.iter().any(|c| matches!(
            c,
            Caution::Apart { a, b } if a == "before:off" && b == "after:off"
        )),
        "{:?}",
        comparison.cautions
    );
    assert_eq!(comparison.deciding().next().unwrap().n_b, Some(6));
}
