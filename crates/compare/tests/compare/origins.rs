//! Records made by different guests, emulators and kernels.

use pagetide_compare::{Caution, Comparison, compare_two};
use pagetide_quantity::Nanos;
use pagetide_record::{Invalid, Record};

use super::bench::Bench;

#[test]
fn exact_records_of_one_trial_that_differ_are_pointed_out() {
    let mut bench = Bench::new(1);
    bench.fill(0, 6, 0.9);
    let mut twice = bench.trial(0, 0, 3, 123.0);
    twice.wall.started = Nanos(99);
    let writer = bench.store.writer().unwrap();
    bench.store.add(writer, &mut twice).unwrap();
    let comparison = bench.compare();
    assert!(
        comparison
            .cautions
            .iter()
            .any(|c| matches!(c, Caution::NotExact { .. }))
    );
}

#[test]
fn guests_that_differ_are_named_with_how_much_results_move_between_them() {
    let told = |comparison: &Comparison| {
        let mut cautions = comparison.cautions.iter();
        let guest = cautions.find(|c| matches!(c, Caution::OtherGuest { .. }));
        guest.map(ToString::to_string)
    };
    let by = |guest: &str, mut record: Record| {
        record.subject.arena.guest = guest.repeat(64);
        record
    };
    let mut bench = Bench::new(1);
    for seed in 1..=6 {
        let time = 1e6 * (1.0 + 0.01 * seed as f64);
        bench.add(0, 0, by("a", bench.trial(0, 0, seed, time)));
        // One side was run by a newer guest, except for one trial, so this side has two guests.
        let guest = if seed == 6 { "a" } else { "b" };
        bench.add(0, 1, by(guest, bench.trial(0, 1, seed, 0.9 * time)));
    }
    let text = told(&bench.compare()).unwrap();
    assert!(
        text.contains("off by aaaaaaaaaaaa (6 trials), on by aaaaaaaaaaaa (1 trial) and bbbbbbbbbbbb (5 trials)"),
        "{text}"
    );
    assert!(
        text.contains("by how much results move is not known"),
        "{text}"
    );
    // The newer guest also ran two trials of the baseline, one of which is invalid. The valid trial shows how much
    // results change with the guest.
    let store = |bench: &mut Bench, mut record: Record, moment: u64| {
        record.wall.started = Nanos(moment);
        let writer = bench.store.writer().unwrap();
        bench.store.add(writer, &mut record).unwrap();
    };
    let again = by("b", bench.trial(0, 0, 2, 1.02e6 * 1.05));
    store(&mut bench, again, 900);
    let mut broken = by("b", bench.trial(0, 0, 3, 9e9));
    broken.results.invalid.push(Invalid::NoReclaim);
    store(&mut bench, broken, 901);
    let text = told(&bench.compare()).unwrap();
    assert!(
        text.contains("in the one trial that two of them ran, run +5.00 %"),
        "{text}"
    );
    let again = by("b", bench.trial(0, 0, 4, 1.04e6 * 0.9));
    store(&mut bench, again, 902);
    let text = told(&bench.compare()).unwrap();
    assert!(
        text.contains("in 2 trials that two of them ran, at most run -10.00 %"),
        "{text}"
    );
    // If both sides have the same guest, there is no warning, even if the store has records of other guests.
    let mut same = Bench::new(1);
    same.fill(0, 6, 0.9);
    assert_eq!(told(&same.compare()), None);
}

#[test]
fn an_emulator_or_kernel_that_differs_is_named() {
    let mut bench = Bench::new(1);
    let mut add = |variant: usize, seed: u64, kernel: &str, emulator: &str| {
        let mut record = bench.trial(0, variant, seed, 1e6 + seed as f64);
        record.subject.variant.kernel.digest = kernel.repeat(64);
        record.subject.arena.emulator = emulator.to_owned();
        bench.add(0, variant, record);
    };
    for seed in 1..=6 {
        // Side 0 has kernels of two builds of the same release.
        add(0, seed, if seed < 3 { "c" } else { "d" }, "qemu 7.2");
        add(1, seed, "e", "qemu 7.2");
        add(1, seed + 6, "e", "qemu 9.1");
    }
    let comparison = compare_two(&bench.store, "6.0", "6.1", false).unwrap();
    let cautions: Vec<String> = comparison
        .cautions
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        cautions.iter().any(|caution| caution.starts_with(
            "the records of 6.0 are of 2 kernels (cccccccccccc (2 trials), dddddddddddd (4 trials))"
        )),
        "{cautions:?}"
    );
    assert!(
        !cautions
            .iter()
            .any(|caution| caution.contains("the records of 6.1 are")),
        "{cautions:?}"
    );
    // Records of another emulator belong to another cell; without a common cell nothing is compared.
    let mut other = Bench::new(1);
    for (variant, emulator) in [(0, "qemu 7.2"), (1, "qemu 9.1")] {
        let mut record = other.trial(0, variant, 1, 1e6);
        record.subject.arena.emulator = emulator.to_owned();
        other.add(0, variant, record);
    }
    let refused = compare_two(&other.store, "6.0", "6.1", false).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("emulator is qemu 7.2 against qemu 9.1"),
        "{refused}"
    );
}
