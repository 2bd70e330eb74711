//! Comparisons over a real store with made-up records.

// Helpers of tests may unwrap as tests do.
#![allow(clippy::unwrap_used)]

use pagetide_compare::history::{Order, history};
use pagetide_compare::{
    Allowance, Caution, CompareError, Comparison, FailOn, Overall, compare_campaign, compare_note,
    compare_two, tails,
};
use pagetide_quantity::{Direction, Histogram, Metric, MetricDef, Nanos};
use pagetide_record::{ArenaKind, Invalid, Pass, Record};
use pagetide_store::Store;
use pagetide_store::{CampaignNote, CellNote, Entry, Filter};
use pagetide_verdict::{Margin, Verdict};

const TIME: MetricDef = MetricDef::time("run", "whole run").primary();
const SCANNED: MetricDef = MetricDef::count("scanned", Direction::Neutral, "pages scanned");

struct Bench {
    _dir: tempfile::TempDir,
    store: Store,
    note: CampaignNote,
    moment: u64,
}

impl Bench {
    /// A campaign `test` with variants `off` and `on` over so many cells.
    fn new(cells: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let note = CampaignNote {
            name: "test".into(),
            generation: 1,
            variants: vec!["off".into(), "on".into()],
            cells: (0..cells)
                .map(|n| CellNote {
                    label: format!("cell {n}"),
                    ..CellNote::default()
                })
                .collect(),
            ..CampaignNote::default()
        };
        Self {
            _dir: dir,
            store,
            note,
            moment: 0,
        }
    }

    /// A trial of a cell under a variant, taking `time` ns.
    fn trial(&self, cell: usize, variant: usize, seed: u64, time: f64) -> Record {
        let mut record = Record::default();
        let subject = &mut record.subject;
        subject.scenario = "linear".into();
        subject
            .params
            .insert("pages".into(), (100 * (cell + 1)).to_string());
        subject.seed = seed;
        subject
            .variant
            .name
            .clone_from(&self.note.variants[variant]);
        subject.variant.kernel.release = format!("6.{variant}");
        subject
            .variant
            .settings
            .insert("lru_gen/enabled".into(), variant.to_string());
        record.results.metrics = vec![
            Metric::new(&SCANNED, 1000.0 + seed as f64),
            Metric::new(&TIME, time),
        ];
        record
    }

    /// Stores a record and says that it belongs to the campaign.
    fn add(&mut self, cell: usize, variant: usize, mut record: Record) -> Record {
        self.moment += 1;
        record.wall.started = Nanos(self.moment);
        record.wall.campaign = self.note.id();
        let unit = u32::try_from(record.subject.seed).unwrap() - 1;
        self.note.entries.push(Entry {
            key: record.subject.key(),
            cell,
            variant,
            unit: if record.wall.unit > 0 {
                record.wall.unit - 1
            } else {
                unit
            },
            repetition: record.wall.repetition,
        });
        let writer = self.store.writer().unwrap();
        self.store.add(writer, &mut record).unwrap();
        self.store.note(&self.note).unwrap();
        record
    }

    /// Fills a cell: `on` takes `factor` of the time of `off`, with a little noise.
    fn fill(&mut self, cell: usize, seeds: u64, factor: f64) {
        for seed in 1..=seeds {
            let base = 1e6 * (1.0 + 0.1 * (seed * 7 % 5) as f64);
            let noise = 1.0 + 0.001 * (seed * 3 % 7) as f64;
            self.add(cell, 0, self.trial(cell, 0, seed, base));
            self.add(cell, 1, self.trial(cell, 1, seed, base * factor * noise));
        }
    }

    fn compare(&self) -> Comparison {
        compare_campaign(&self.store, None).unwrap()
    }
}

fn verdict(comparison: &Comparison, cell: usize, metric: &str) -> Verdict {
    let row = comparison.cells[cell]
        .metrics
        .iter()
        .find(|row| row.name == metric)
        .unwrap();
    row.judgements[0].as_ref().unwrap().verdict.clone()
}

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
    // The order in which A and B are named turns the verdict.
    let turned = compare_two(&bench.store, "on", "off", false).unwrap();
    assert_eq!(verdict(&turned, 1, "run"), Verdict::Improved);
}

#[test]
fn every_value_leads_back_to_the_record_it_came_from_and_pairs_are_by_seed() {
    let mut bench = Bench::new(1);
    bench.fill(0, 7, 0.9);
    // A seed that only one side has is shown, but not paired.
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
    // Both variants are one trial: each entry has a record of its own name.
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
                // Each scenario has a scale of its own: cells that were mixed up would differ ten times and more.
                let scale = [1e6, 1e8, 1e10][cell] * (1.0 + 0.01 * seed as f64);
                let scale = scale * [1.0, 0.5][variant];
                let mut record = bench.trial(cell, variant, seed, scale);
                record.subject.scenario = name.into();
                if variant == 1 {
                    // Two parameters more are nearer than another scenario.
                    for more in ["fill", "page-size"] {
                        record.subject.params.insert(more.into(), "usual".into());
                    }
                }
                bench.add(cell, variant, record);
            }
        }
    }
    // A scenario that only one side has, with fewer parameters apart than the others.
    let mut lone = bench.trial(0, 0, 1, 1e3);
    lone.subject.scenario = "usemem".into();
    bench.add(0, 0, lone);
    let sides = |anyway| {
        let accepted = vec!["lru_gen/enabled".to_owned()];
        compare_two(&bench.store, "6.0", "6.1", Allowance { anyway, accepted })
    };
    // Releases are compared without a campaign: by their cells alone.
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
    // Two releases were named, and a setting differs as well.
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
        // One side by a newer guest but for one trial: also within a side they differ.
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
    // Two trials of the baseline under the newer guest too, one of them invalid: what moves is known from the other.
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
    // The same guest on both sides is nothing to speak of, whatever else the store holds.
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
        // Two builds of one release.
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
    // Records of another emulator are another cell, and alone they are not compared at all.
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
    // Records beyond the look are not looked at before the next.
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

#[test]
fn tails_are_compared_by_the_histograms_of_all_trials() {
    let mut bench = Bench::new(1);
    for seed in 1..=14_u64 {
        for variant in 0..2 {
            let mut record = bench.trial(0, variant, seed, 1e6);
            // Both have 20,000 accesses of about 1 µs and 400 slow ones; those of `on` are half as slow again.
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
                // Blocks are up to a third apart; inside each, `on` is 3 % slower.
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
    // By the campaign's name, and by those of two of its columns.
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

#[test]
fn a_history_finds_the_kernel_from_which_on_a_metric_is_slower() {
    let mut bench = Bench::new(1);
    // Recorded in another order than the versions have.
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
