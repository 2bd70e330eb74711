//! Comparisons and records like those from real trials, judged by the real rules. Values come from a random generator
//! with a fixed seed. The tests of all formats use them.

// The tests of each format use only a part of this module, and long literals are unavoidable.
#![allow(
    dead_code,
    unused_imports,
    clippy::assigning_clones,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::manual_midpoint,
    clippy::too_many_lines,
    clippy::unwrap_used
)]

mod record;

use std::collections::BTreeMap;

use pagetide_compare::{
    Caution, Cell, Column, Comparison, InvalidTrial, MetricRow, Overall, Side, TrialRef, Values,
};
use pagetide_quantity::{Bytes, Direction, Histogram, Nanos, Unit};
use pagetide_record::swap::SSD_LATENCY;
use pagetide_record::{Invalid, KernelId, MemorySpec, Subject, SwapSpec, Variant};
use pagetide_report::About;
use pagetide_verdict::sample::{Data, Family, MetricSample, Pair, Scale};

pub use record::{machine, present, record};

/// A linear congruential generator (Knuth's MMIX constants): the same draws on every machine.
pub struct Draw(pub u64);

impl Draw {
    /// A number that is uniformly distributed from -1 (inclusive) to 1 (exclusive).
    pub fn spread(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64) / (1_u64 << 52) as f64 - 1.0
    }

    /// A random integer from 0 to `n` - 1.
    pub fn below(&mut self, n: u64) -> u64 {
        self.spread();
        (self.0 >> 16) % n
    }
}

/// Shape of a metric: name, unit, direction, true if primary, value of the baseline, factor for each other variant,
/// noise.
pub type Shape<'a> = (&'a str, Unit, Direction, bool, f64, &'a [f64], f64);

/// A metric's row, judged alone by the real rules.
pub fn row(shape: &Shape, seeds: usize, draw: &mut Draw) -> MetricRow {
    let (name, unit, direction, primary, base, factors, noise) = *shape;
    let whole = matches!(unit, Unit::Count | Unit::Pages);
    let tidy = |value: f64| if whole { value.round() } else { value };
    let a: Vec<f64> = (0..seeds)
        .map(|_| tidy(base * (1.0 + 3.0 * noise * draw.spread())))
        .collect();
    let list = |numbers: &[f64]| Values {
        values: numbers.iter().copied().enumerate().collect(),
        absent: None,
    };
    let mut values = vec![list(&a)];
    let mut judgements = Vec::new();
    for factor in factors {
        let identical = (factor - 1.0).abs() < 1e-12;
        let pairs: Vec<Pair> = a
            .iter()
            .map(|a| Pair {
                a: *a,
                b: if identical {
                    *a
                } else {
                    tidy(a * factor * (1.0 + noise * draw.spread()))
                },
                identical,
            })
            .collect();
        let b: Vec<f64> = pairs.iter().map(|pair| pair.b).collect();
        let sample = MetricSample {
            name: name.to_owned(),
            unit: serde_json::to_value(unit)
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned(),
            direction,
            primary,
            margin: None,
            scale: Scale::Auto,
            data: if factor.is_nan() {
                Data::Invalid {
                    reason: "no trial of this variant is valid".to_owned(),
                }
            } else {
                Data::Paired { pairs }
            },
        };
        let judged = pagetide_verdict::judge(&Family::new(1, vec![sample])).unwrap();
        let judgement = judged.into_iter().next().unwrap();
        values.push(if factor.is_nan() {
            Values::default()
        } else {
            list(&b)
        });
        judgements.push(Some(judgement));
    }
    MetricRow {
        name: name.to_owned(),
        unit,
        direction,
        primary,
        values,
        judgements,
    }
}

/// A histogram of `n` draws around `centre`, and a `share` of them around `fault`, in nanoseconds.
pub fn latencies(centre: f64, fault: f64, share: f64, n: u64, seed: u64) -> Histogram {
    let mut draw = Draw(seed);
    let mut dense = vec![0; Histogram::BUCKETS];
    let (mut sum, mut min, mut max) = (0_u64, u64::MAX, 0);
    for _ in 0..n {
        let is_fault = (draw.spread() + 1.0) / 2.0 < share;
        let middle = if is_fault { fault } else { centre };
        // The product of a few draws has a long right tail.
        let factor = (1.0 + draw.spread() * 0.3) * (1.0 + draw.spread().powi(8) * 3.0);
        let value = (middle * factor) as u64;
        dense[Histogram::index(value) as usize] += 1;
        sum += value;
        min = min.min(value);
        max = max.max(value);
    }
    Histogram::from_dense(&dense, sum, min, max)
}

/// A comparison of two variants of one kernel: MGLRU off and on.
pub fn mglru() -> Comparison {
    use Direction::{Higher, Lower, Neutral};
    let mut draw = Draw(7);
    let random: [Shape; 11] = [
        (
            "access-mean",
            Unit::Nanos,
            Lower,
            true,
            24_310.0,
            &[0.893],
            0.004,
        ),
        ("access-p50", Unit::Nanos, Lower, false, 38.0, &[1.0], 0.0),
        (
            "access-p99",
            Unit::Nanos,
            Lower,
            true,
            181_000.0,
            &[0.97],
            0.06,
        ),
        (
            "access-p99.9",
            Unit::Nanos,
            Lower,
            false,
            402_000.0,
            &[1.31],
            0.05,
        ),
        (
            "swap-ins",
            Unit::Pages,
            Lower,
            true,
            63_604.0,
            &[0.874],
            0.003,
        ),
        (
            "elapsed",
            Unit::Nanos,
            Lower,
            true,
            7.8e9,
            &[1.0005],
            0.0008,
        ),
        (
            "refaults",
            Unit::Count,
            Neutral,
            false,
            51_213.0,
            &[0.9],
            0.005,
        ),
        (
            "scan-efficiency",
            Unit::Share,
            Higher,
            false,
            0.71,
            &[1.08],
            0.01,
        ),
        (
            "kswapd-stall",
            Unit::Nanos,
            Lower,
            false,
            21_000_000.0,
            &[1.002],
            0.05,
        ),
        ("oom-kills", Unit::Count, Lower, false, 0.0, &[1.0], 0.0),
        (
            "direct-reclaims",
            Unit::Count,
            Lower,
            false,
            112.0,
            &[f64::NAN],
            0.1,
        ),
    ];
    let swapbench: [Shape; 4] = [
        (
            "read-mean",
            Unit::Nanos,
            Lower,
            true,
            433_929_000.0,
            &[1.048],
            0.004,
        ),
        (
            "write-mean",
            Unit::Nanos,
            Lower,
            true,
            430_475_000.0,
            &[1.0],
            0.0,
        ),
        ("fairness", Unit::Ratio, Higher, true, 0.81, &[1.02], 0.08),
        (
            "swap-outs",
            Unit::Pages,
            Lower,
            false,
            91_222.0,
            &[1.001],
            0.001,
        ),
    ];
    let release = "6.12.117-cloud-amd64";
    let columns = vec![
        column("mglru-off", release, &[("lru_gen/enabled", "0")]),
        column("mglru-on", release, &[("lru_gen/enabled", "7")]),
    ];
    let random = random.iter().map(|s| row(s, 8, &mut draw)).collect();
    let swapbench = swapbench.iter().map(|s| row(s, 6, &mut draw)).collect();
    let mut comparison = Comparison {
        campaign: Some("quick".to_owned()),
        baseline: None,
        columns,
        cells: vec![
            cell(
                "smooth-sin-random",
                &[("range", "32768"), ("refs", "2000000"), ("op", "write")],
                SwapSpec::ZRAM,
                random,
            ),
            cell(
                "swapbench",
                &[("processes", "30"), ("size", "10M")],
                SwapSpec::Ssd(SSD_LATENCY),
                swapbench,
            ),
        ],
        alpha: 0.05,
        look: None,
        overall: Overall::Regressed,
        cautions: vec![Caution::VirtualTime],
        notes: Vec::new(),
        kinds: Vec::new(),
        explanations: Vec::new(),
    };
    comparison.columns[1].invalid = 1;
    comparison.cells[0].sides[1].invalid.push(InvalidTrial {
        record: "0badc0de".to_owned(),
        seed: 9,
        why: Invalid::OutOfMemory {
            process: "pagetide".to_owned(),
            after: Nanos::from_millis(1_230),
        }
        .to_string(),
        died: false,
    });
    comparison
}

/// A column for a variant with this name, kernel release and settings.
pub fn column(name: &str, release: &str, settings: &[(&str, &str)]) -> Column {
    Column {
        name: name.to_owned(),
        variant: Some(Variant {
            name: name.to_owned(),
            kernel: KernelId {
                release: release.to_owned(),
                ..KernelId::default()
            },
            boot: Vec::new(),
            settings: texts(settings),
        }),
        valid: 8,
        invalid: 0,
        pending: 0,
        paired: true,
        swap: String::new(),
    }
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

/// A cell with as many sides as its metrics have values.
pub fn cell(
    scenario: &str,
    params: &[(&str, &str)],
    swap: SwapSpec,
    metrics: Vec<MetricRow>,
) -> Cell {
    let subject = Subject {
        scenario: scenario.to_owned(),
        params: texts(params),
        memory: MemorySpec::Free(Bytes::from_mib(64)),
        swap,
        ..Subject::default()
    };
    let sides = metrics.first().map_or(0, |row| row.values.len());
    let side = |column: usize| Side {
        trials: (1..=8)
            .map(|seed| TrialRef {
                record: format!("{column:x}{seed:031x}"),
                seed,
                unit: u32::try_from(seed).unwrap(),
                repetition: 0,
                digest: format!("{seed:064x}"),
            })
            .collect(),
        invalid: Vec::new(),
        swap: None,
    };
    Cell {
        label: subject.cell_label(),
        subject: Some(subject),
        sides: (0..sides).map(side).collect(),
        metrics,
    }
}

/// Additional data for [`mglru`].
pub fn about() -> About {
    About {
        title: "MGLRU on against off (campaigns/quick.toml)".to_owned(),
        command: "pagetide run campaigns/quick.toml".to_owned(),
        machine: machine(),
        access: BTreeMap::from([
            ((0, 0), latencies(40.0, 90_000.0, 0.03, 200_000, 1)),
            ((0, 1), latencies(42.0, 80_000.0, 0.02, 200_000, 2)),
        ]),
        case: None,
    }
}

/// The HTML page of a comparison that needs no record.
pub fn page(comparison: &Comparison) -> String {
    page_about(comparison, &about())
}

/// The HTML page of a comparison that needs no record, with this text about it.
pub fn page_about(comparison: &Comparison, about: &About) -> String {
    use pagetide_report::html::{Assets, Input, Sources, write};
    let sources = Sources::default();
    let input = Input {
        comparison,
        about,
        sources: &sources,
        open: &|_| Err("no record is needed".to_owned()),
        assets: Assets::Inside,
    };
    let mut page = Vec::new();
    write(&input, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// Additional data for [`kernels`].
pub fn about_kernels() -> About {
    About {
        title: "Three kernels at equal free memory".to_owned(),
        command: "pagetide run campaigns/kernels.toml".to_owned(),
        machine: machine(),
        access: BTreeMap::new(),
        case: None,
    }
}

/// A comparison of three kernels.
pub fn kernels() -> Comparison {
    use Direction::Lower;
    let mut draw = Draw(11);
    let shapes: [Shape; 4] = [
        (
            "access-mean",
            Unit::Nanos,
            Lower,
            true,
            7_800.0,
            &[0.87, 1.077],
            0.004,
        ),
        (
            "access-p99",
            Unit::Nanos,
            Lower,
            true,
            181_000.0,
            &[1.02, 1.02],
            0.06,
        ),
        (
            "swap-ins",
            Unit::Pages,
            Lower,
            true,
            63_600.0,
            &[1.0, 1.146],
            0.003,
        ),
        (
            "elapsed",
            Unit::Nanos,
            Lower,
            true,
            7.8e9,
            &[0.871, 1.08],
            0.004,
        ),
    ];
    let metrics = shapes.iter().map(|s| row(s, 6, &mut draw)).collect();
    Comparison {
        campaign: Some("kernels".to_owned()),
        baseline: None,
        columns: vec![
            column("6.1", "6.1.0-50-cloud-amd64", &[]),
            column("6.12", "6.12.117+deb12-cloud-amd64", &[]),
            column("7.2", "7.2.13-cloud-amd64", &[]),
        ],
        cells: vec![cell("random", &[], SwapSpec::ZRAM, metrics)],
        alpha: 0.05,
        look: None,
        overall: Overall::Regressed,
        cautions: vec![Caution::VirtualTime, Caution::Pending { trials: 3 }],
        notes: Vec::new(),
        kinds: Vec::new(),
        explanations: Vec::new(),
    }
}

/// A comparison of one kernel with itself.
pub fn same() -> Comparison {
    let mut comparison = mglru();
    comparison.columns[0].name = "a".to_owned();
    comparison.columns[1].name = "b".to_owned();
    comparison.cells.truncate(1);
    comparison.cells[0].sides[1].invalid.clear();
    let mut draw = Draw(3);
    for metric in &mut comparison.cells[0].metrics {
        let shape: Shape = (
            &metric.name,
            metric.unit,
            metric.direction,
            metric.primary,
            1234.0,
            &[1.0],
            0.01,
        );
        *metric = row(&shape, 8, &mut draw);
    }
    comparison.overall = Overall::Identical;
    comparison
}

/// A text with many dangerous parts: terminal sequences, markup, line breaks, syntax of formats, and one megabyte of
/// text.
pub fn hostile() -> String {
    format!(
        "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\r\nnot ok 1 - forged\n# EOF\n1..9\n\"}},{{\"|`a`|*b*|{{x=\"y\"}}\t\
         =1+1,@cmd \u{9b}31m\u{202e}gnp\u{2028}\0{}",
        "A".repeat(1 << 20)
    )
}

/// A comparison in which all texts are hostile.
pub fn poisoned() -> Comparison {
    let mut comparison = mglru();
    let text = hostile();
    for column in &mut comparison.columns {
        column.name.insert_str(0, &text);
        let variant = column.variant.as_mut().unwrap();
        variant.kernel.release.clone_from(&text);
        variant.settings.insert(text.clone(), text.clone());
        variant.boot.push(text.clone());
    }
    for cell in &mut comparison.cells {
        cell.label.insert_str(0, &text);
        let subject = cell.subject.as_mut().unwrap();
        subject.scenario.insert_str(0, &text);
        subject.params.insert(text.clone(), text.clone());
        for metric in &mut cell.metrics {
            metric.name.insert_str(0, &text);
        }
        for side in &mut cell.sides {
            for trial in &mut side.invalid {
                trial.why.clone_from(&text);
            }
        }
    }
    comparison.cautions.push(Caution::NotExact {
        a: text.clone(),
        b: text,
    });
    comparison
}

/// Additional data for [`poisoned`].
pub fn about_poisoned() -> About {
    let text = hostile();
    let mut about = about();
    about.title.clone_from(&text);
    about.command.clone_from(&text);
    about.machine.cpu.clone_from(&text);
    about.machine.system = text;
    about
}
