//! OpenMetrics text (version 1.0.0): values, changes and verdicts as gauges, in base units.
//!
//! Only gauges are used, so that the older Prometheus text format reads the same file. Labels hold cleaned names.

use std::collections::BTreeMap;

use pagetide_compare::{Cell as Group, Comparison, MetricRow};
use pagetide_quantity::{Nanos, Unit};
use pagetide_record::subject::hex;
use pagetide_verdict::Judgement;
use pagetide_verdict::judgement::EffectKind;
use sha2::{Digest, Sha256};

use crate::about;
use crate::draw::clean;

/// Longest value of a label.
const LABEL_CHARS: usize = 200;

/// A family: all samples of one name stand together.
#[derive(Default)]
struct Family {
    unit: &'static str,
    help: String,
    samples: Vec<(String, f64)>,
}

/// Families by name.
#[derive(Default)]
struct Families {
    all: BTreeMap<String, Family>,
}

impl Families {
    fn add(&mut self, name: String, unit: &'static str, help: &str, labels: String, value: f64) {
        let family = self.all.entry(name).or_insert_with(|| Family {
            unit,
            help: help.to_owned(),
            samples: Vec::new(),
        });
        family.samples.push((labels, value));
    }
}

/// Writes a comparison; `at` is the moment the samples are given, in whole seconds, as a database needs it.
pub fn openmetrics(comparison: &Comparison, at: Option<Nanos>) -> String {
    let mut families = Families::default();
    for group in &comparison.cells {
        for row in &group.metrics {
            for index in 0..comparison.columns.len() {
                sample(&mut families, comparison, group, row, index);
            }
        }
    }
    for column in &comparison.columns {
        families.add(
            "pagetide_invalid_trials".to_owned(),
            "",
            "Trials that are invalid and not used.",
            labels(&[("variant", column.name.clone())]),
            column.invalid as f64,
        );
    }
    let moment = at.map_or_else(String::new, |at| format!(" {}", at.0 / 1_000_000_000));
    let mut out = String::new();
    for (name, family) in &families.all {
        put!(out, "# TYPE {name} gauge\n");
        if !family.unit.is_empty() {
            put!(out, "# UNIT {name} {}\n", family.unit);
        }
        put!(out, "# HELP {name} {}\n", family.help);
        for (labels, value) in &family.samples {
            put!(out, "{name}{{{labels}}} {}{moment}\n", number(*value));
        }
    }
    out.push_str("# EOF\n");
    out
}

fn sample(
    families: &mut Families,
    comparison: &Comparison,
    group: &Group,
    row: &MetricRow,
    index: usize,
) {
    let Some(column) = comparison.columns.get(index) else {
        return;
    };
    let subject = about::subject(group);
    let base = [
        ("scenario", subject.scenario.clone()),
        ("cell", group.label.clone()),
        ("memory", subject.memory.to_string()),
        ("swap", subject.swap.to_string()),
        ("metric", row.name.clone()),
        ("primary", row.primary.to_string()),
        ("variant", column.name.clone()),
        ("kernel", about::release(column).to_owned()),
    ];
    let (factor, unit) = unit(row.unit);
    if let Some(values) = row.values.get(index).and_then(about::centre) {
        families.add(
            join("pagetide_value", unit),
            unit,
            "Median over the trials of a variant.",
            labels(&base),
            values.median * factor,
        );
        families.add(
            "pagetide_trials".to_owned(),
            "",
            "Trials behind a value.",
            labels(&base),
            values.n as f64,
        );
    }
    let Some(judgement) = about::judgement(row, index) else {
        return;
    };
    let with = |name: &'static str, value: &str| {
        let mut all = base.to_vec();
        all.push((name, value.to_owned()));
        labels(&all)
    };
    families.add(
        "pagetide_verdict".to_owned(),
        "",
        "Always 1; the verdict against the baseline is a label.",
        with("verdict", &judgement.verdict.to_string()),
        1.0,
    );
    for (bound, value) in bounds(judgement) {
        let (name, unit, factor) = match judgement.effect.map(|effect| effect.kind) {
            Some(EffectKind::Ratio) => ("pagetide_effect_ratio".to_owned(), "ratio", 1.0),
            _ => (join("pagetide_difference", unit), unit, factor),
        };
        families.add(
            name,
            unit,
            "Effect of a variant against the baseline and the ends of its interval.",
            with("bound", bound),
            value * factor,
        );
    }
}

/// The effect and the ends of its interval.
fn bounds(judgement: &Judgement) -> Vec<(&'static str, f64)> {
    let Some(effect) = judgement.effect else {
        return Vec::new();
    };
    let mut all = vec![("estimate", effect.estimate)];
    if let Some(interval) = effect.interval {
        all.extend([("low", interval.low), ("high", interval.high)]);
    }
    all
}

/// Factor to the base unit and its name, as the end of a family's name.
const fn unit(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Nanos => (1e-9, "seconds"),
        Unit::Bytes => (1.0, "bytes"),
        Unit::Pages => (1.0, "pages"),
        Unit::Share | Unit::Ratio => (1.0, "ratio"),
        Unit::BytesPerSecond => (1.0, "bytes_per_second"),
        Unit::PerSecond => (1.0, "per_second"),
        Unit::Count => (1.0, ""),
    }
}

fn join(name: &str, unit: &str) -> String {
    if unit.is_empty() {
        name.to_owned()
    } else {
        format!("{name}_{unit}")
    }
}

/// Labels with their values escaped (OpenMetrics, "escaped-string").
fn labels(pairs: &[(&str, String)]) -> String {
    let all: Vec<String> = pairs
        .iter()
        .map(|(name, value)| {
            let value = short(value).replace('\\', "\\\\").replace('"', "\\\"");
            format!("{name}=\"{value}\"")
        })
        .collect();
    all.join(",")
}

/// A label's value. What is cut keeps a part of its digest, since two samples must not get the same labels.
fn short(text: &str) -> String {
    let whole = clean(text, LABEL_CHARS, false);
    if whole.len() <= LABEL_CHARS && !whole.ends_with('…') {
        return whole;
    }
    let digest = hex(&Sha256::digest(text)[..6]);
    format!("{}~{digest}", clean(text, LABEL_CHARS - 13, false))
}

/// A number as OpenMetrics writes it.
fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}
