//! KCIDB v5.3 (kcidb-io, `schema/v05_03.py`): reports for the kernel's common results database.
//!
//! There is one checkout and one build for each variant, and one test for each cell, metric and variant, with the
//! variant's median as its number. PASS: a primary metric improved, or any metric is equivalent or identical. FAIL: a
//! primary metric regressed. If a cell has no primary metric, all of its metrics count as primary. DONE: everything
//! else, such as the baseline and changed, confounded or inconclusive metrics. ERROR: the verdict is invalid.

use std::collections::BTreeMap;

use pagetide_compare::{Cell as Group, Column, Comparison, MetricRow};
use pagetide_quantity::Unit;
use pagetide_record::subject::hex;
use pagetide_verdict::{Judgement, Verdict};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::about::{self, About, BASELINE};
use crate::draw::clean;
use crate::json;
use crate::ktap::token;

/// Maximum length of free text, in characters.
const TEXT_CHARS: usize = 1000;
/// Maximum length of a part of a path, in characters.
const PART_CHARS: usize = 60;

#[derive(Serialize)]
struct Report {
    version: Version,
    checkouts: Vec<Checkout>,
    builds: Vec<Build>,
    tests: Vec<Test>,
}

#[derive(Serialize)]
struct Version {
    major: u32,
    minor: u32,
}

#[derive(Serialize)]
struct Checkout {
    id: String,
    origin: String,
    comment: String,
}

#[derive(Serialize)]
struct Build {
    id: String,
    checkout_id: String,
    origin: String,
    architecture: &'static str,
    comment: String,
}

#[derive(Serialize)]
struct Test {
    id: String,
    build_id: String,
    origin: String,
    path: String,
    status: &'static str,
    comment: String,
    environment: Environment,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<Number>,
    misc: Misc,
}

#[derive(Serialize)]
struct Environment {
    comment: String,
}

#[derive(Serialize)]
struct Number {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<&'static str>,
}

#[derive(Serialize)]
struct Misc {
    scenario: String,
    params: BTreeMap<String, String>,
    memory: String,
    swap: String,
    variant: String,
    baseline: String,
    settings: String,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    judgement: Option<Judgement>,
}

/// Formats a comparison as a KCIDB report. `origin` is the name of the submitting system; it is converted to small
/// letters, digits and `_`.
pub fn kcidb(comparison: &Comparison, about: &About, origin: &str) -> String {
    let origin = token(origin, 40)
        .to_ascii_lowercase()
        .replace(['.', '-'], "_");
    // Equal comparisons get equal ids, so that a report that is sent twice counts once.
    let run = hex(&Sha256::digest(serde_json::to_vec(comparison).unwrap_or_default())[..12]);
    let mut report = Report {
        version: Version { major: 5, minor: 3 },
        checkouts: Vec::new(),
        builds: Vec::new(),
        tests: Vec::new(),
    };
    for (index, column) in comparison.columns.iter().enumerate() {
        let id = |kind: &str| format!("{origin}:{run}-{kind}-{index}");
        report.checkouts.push(Checkout {
            id: id("checkout"),
            origin: origin.clone(),
            comment: clean(about::release(column), TEXT_CHARS, false),
        });
        report.builds.push(Build {
            id: id("build"),
            checkout_id: id("checkout"),
            origin: origin.clone(),
            architecture: "x86_64",
            comment: clean(about::release(column), TEXT_CHARS, false),
        });
    }
    for (cell, group) in comparison.cells.iter().enumerate() {
        let any = group.metrics.iter().any(|row| row.primary);
        for (metric, row) in group.metrics.iter().enumerate() {
            for (index, column) in comparison.columns.iter().enumerate() {
                let place = TestContext {
                    comparison,
                    about,
                    group,
                    row,
                    index,
                    column,
                };
                let mut test = test(&place, row.primary || !any);
                test.id = format!("{origin}:{run}-{cell}-{metric}-{index}");
                test.build_id = format!("{origin}:{run}-build-{index}");
                test.origin.clone_from(&origin);
                report.tests.push(test);
            }
        }
    }
    json::pretty(&report)
}

/// A metric in one column of a cell, which becomes one test.
struct TestContext<'a> {
    comparison: &'a Comparison,
    about: &'a About,
    group: &'a Group,
    row: &'a MetricRow,
    index: usize,
    column: &'a Column,
}

fn test(place: &TestContext, decides: bool) -> Test {
    let TestContext {
        comparison,
        about,
        group,
        row,
        index,
        column,
    } = *place;
    let subject = about::subject(group);
    let own_swap = group.sides.get(index).and_then(|side| side.swap.as_ref());
    let judgement = about::judgement(row, index);
    let status = match judgement.map(|judgement| &judgement.verdict) {
        Some(Verdict::Regressed) if decides => "FAIL",
        Some(Verdict::Improved) if decides => "PASS",
        Some(Verdict::Equivalent | Verdict::Identical) => "PASS",
        Some(Verdict::Invalid { .. }) => "ERROR",
        _ => "DONE",
    };
    let number = row
        .values
        .get(index)
        .and_then(about::centre)
        .filter(|values| values.median.is_finite())
        .map(|values| {
            let (factor, unit, prefix) = unit(row.unit);
            Number {
                value: values.median * factor,
                unit,
                prefix,
            }
        });
    let part = |text: &str| token(text, PART_CHARS).replace('.', "_");
    let text = |text: &str| clean(text, TEXT_CHARS, false);
    let machine = &about.machine;
    Test {
        id: String::new(),
        build_id: String::new(),
        origin: String::new(),
        path: format!(
            "pagetide.{}.{}.{}",
            part(&subject.scenario),
            part(&match own_swap {
                Some(_) => subject.memory.to_string(),
                None => format!("{}_{}", subject.memory, subject.swap_label()),
            }),
            part(&row.name)
        ),
        status,
        comment: text(&format!("{} of {}", row.name, group.label)),
        environment: Environment {
            comment: text(&format!(
                "{} arena on {} x {}, {}",
                subject.arena.kind, machine.cpus, machine.cpu, machine.system
            )),
        },
        number,
        misc: Misc {
            scenario: text(&subject.scenario),
            params: subject
                .params
                .iter()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            memory: subject.memory.to_string(),
            swap: group.swap_of(index).to_string(),
            variant: text(&column.name),
            baseline: text(about::name(comparison, BASELINE)),
            settings: text(&about::settings(column)),
            command: text(&about.command),
            judgement: judgement.cloned(),
        },
    }
}

/// Returns the factor from pagetide's unit to KCIDB's unit, the name of KCIDB's unit (`None` for a pure number), and
/// the kind of prefix for display (`None` for no prefix).
const fn unit(unit: Unit) -> (f64, Option<&'static str>, Option<&'static str>) {
    match unit {
        Unit::Nanos => (1e-9, Some("s"), Some("metric")),
        Unit::Bytes => (1.0, Some("B"), Some("binary")),
        Unit::Pages => (1.0, Some("pages"), None),
        Unit::Share => (100.0, Some("%"), None),
        Unit::BytesPerSecond => (1.0, Some("B/s"), Some("binary")),
        Unit::PerSecond => (1.0, Some("1/s"), None),
        Unit::Count | Unit::Ratio => (1.0, None, None),
    }
}
