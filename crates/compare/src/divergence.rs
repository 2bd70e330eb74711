//! Finds the first difference between two records of the same trial. Reasons of invalidity and metrics are searched
//! first, because they are the easiest to understand; then the elapsed time, counters, histograms, settings, facts,
//! texts and bulk sections.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use pagetide_record::{Record, Results};
use serde::Serialize;

/// One difference between two records of the same trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// Kind of the differing value: `metric`, `counter`, `section`, ….
    kind: &'static str,
    /// Name of the differing value, such as the metric's name.
    name: String,
    /// Value in the first record.
    before: String,
    /// Value in the second record, the repetition.
    after: String,
}

impl Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} was {} and is {}",
            self.kind, self.name, self.before, self.after
        )
    }
}

/// Values of one metric in two records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Name of the metric.
    metric: String,
    /// Values in the first and the second record, in the metric's unit.
    values: [f64; 2],
}

impl Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.values;
        write!(f, "{} {:+.2} %", self.metric, 100.0 * (b / a - 1.0))
    }
}

impl Change {
    /// True if the ratio of this metric's values is farther from 1 than the ratio in `other`.
    pub(crate) fn is_beyond(&self, other: &Self) -> bool {
        self.apart() > other.apart()
    }

    fn apart(&self) -> f64 {
        (self.values[1] / self.values[0]).ln().abs()
    }
}

/// Returns the primary metric that changed by the largest ratio between two records; `None` if no primary metric is
/// above zero in both.
pub fn largest_change(a: &Record, b: &Record) -> Option<Change> {
    let changes = a
        .results
        .metrics
        .iter()
        .filter(|metric| metric.primary)
        .filter_map(|metric| {
            let other = b.metric(&metric.name)?;
            let values = [metric.value.number()?, other.value.number()?];
            values.iter().all(|value| *value > 0.0).then(|| Change {
                metric: metric.name.clone(),
                values,
            })
        });
    changes.max_by(|x, y| x.apart().total_cmp(&y.apart()))
}

/// Returns the first difference between two records whose digests differ.
pub fn first_divergence(a: &Record, b: &Record) -> Divergence {
    of_results(&a.results, &b.results)
        .or_else(|| {
            let sections = |record: &Record| {
                record
                    .sections
                    .iter()
                    .map(|s| {
                        let what = format!("{} of {} with digest {}", s.kind, s.size, s.digest);
                        (format!("{} {}", s.kind, s.name), what)
                    })
                    .collect::<BTreeMap<_, _>>()
            };
            of_maps("section", &sections(a), &sections(b))
        })
        .unwrap_or_else(|| Divergence {
            kind: "order of",
            name: "the sections".to_owned(),
            before: a.digest.clone(),
            after: b.digest.clone(),
        })
}

fn of_results(a: &Results, b: &Results) -> Option<Divergence> {
    let reasons = |results: &Results| -> BTreeMap<String, String> {
        let text = results.invalid.iter().map(ToString::to_string);
        text.enumerate()
            .map(|(i, why)| (i.to_string(), why))
            .collect()
    };
    let metrics = |results: &Results| -> BTreeMap<String, String> {
        let all = results.metrics.iter();
        all.map(|metric| (metric.name.clone(), format!("{:?}", metric.value)))
            .collect()
    };
    let counters = |results: &Results| -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (source, counters) in &results.counters {
            for (name, [before, after]) in &counters.values {
                all.insert(format!("{source} {name}"), format!("{before} → {after}"));
            }
        }
        all
    };
    let histograms = |results: &Results| -> BTreeMap<String, String> {
        let all = results.histograms.iter();
        all.map(|(name, h)| {
            (
                name.clone(),
                format!("{} values, sum {}, largest {}", h.count, h.sum, h.max),
            )
        })
        .collect()
    };
    of_maps("reason of invalidity", &reasons(a), &reasons(b))
        .or_else(|| of_maps("metric", &metrics(a), &metrics(b)))
        .or_else(|| {
            let time = |results: &Results| {
                BTreeMap::from([("elapsed".to_owned(), format!("{} ns", results.elapsed.0))])
            };
            of_maps("time", &time(a), &time(b))
        })
        .or_else(|| of_maps("counter", &counters(a), &counters(b)))
        .or_else(|| of_maps("histogram", &histograms(a), &histograms(b)))
        .or_else(|| of_maps("setting", &a.settings, &b.settings))
        .or_else(|| of_maps("fact", &a.facts, &b.facts))
        .or_else(|| of_texts(&a.texts, &b.texts))
        .or_else(|| {
            let log = |results: &Results| {
                BTreeMap::from([("kernel log".to_owned(), results.kernel_log.clone())])
            };
            of_texts(&log(a), &log(b))
        })
        .or_else(|| {
            (a.histograms != b.histograms || a.halts != b.halts || a.warnings != b.warnings).then(
                || Divergence {
                    kind: "part",
                    name: "histograms' buckets, halts or warnings".to_owned(),
                    before: format!("{:?} {:?}", a.halts, a.warnings),
                    after: format!("{:?} {:?}", b.halts, b.warnings),
                },
            )
        })
}

/// Returns the first entry that differs between the two maps, in the order of the names in `a`, then of those in `b`.
/// `None` if the maps are equal.
fn of_maps(
    kind: &'static str,
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
) -> Option<Divergence> {
    let show = |value: Option<&String>| value.map_or_else(|| "not there".to_owned(), Clone::clone);
    a.keys()
        .chain(b.keys())
        .find(|name| a.get(*name) != b.get(*name))
        .map(|name| Divergence {
            kind,
            name: name.clone(),
            before: show(a.get(name)),
            after: show(b.get(name)),
        })
}

/// Returns the first differing line of two sets of texts; `None` if the sets are equal.
fn of_texts(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Option<Divergence> {
    let difference = of_maps("text", a, b)?;
    let mut lines = difference.before.lines();
    let mut others = difference.after.lines();
    let mut number = 0;
    loop {
        number += 1;
        match (lines.next(), others.next()) {
            (None, None) => return Some(difference),
            (x, y) if x == y => {}
            (x, y) => {
                return Some(Divergence {
                    kind: "text",
                    name: format!("{} line {number}", difference.name),
                    before: x.unwrap_or("not there").to_owned(),
                    after: y.unwrap_or("not there").to_owned(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_record::Counters;

    fn record(text: &str, faults: u64) -> Record {
        let mut record = Record::default();
        let counters = Counters {
            values: BTreeMap::from([("pgfault".to_owned(), [0, faults])]),
        };
        record.results.counters.insert("vmstat".into(), counters);
        record.results.texts.insert("zoneinfo".into(), text.into());
        record
    }

    #[test]
    fn a_counter_is_named_before_a_text() {
        let difference = first_divergence(&record("a\nb", 1), &record("a\nc", 2)).to_string();
        assert_eq!(difference, "counter vmstat pgfault was 0 → 1 and is 0 → 2");
    }

    #[test]
    fn of_texts_the_first_line_that_differs_is_shown() {
        let difference = first_divergence(&record("a\nb\nc", 1), &record("a\nx\nc", 1)).to_string();
        assert_eq!(difference, "text zoneinfo line 2 was b and is x");
        let shorter = first_divergence(&record("a\nb", 1), &record("a", 1)).to_string();
        assert_eq!(shorter, "text zoneinfo line 2 was b and is not there");
    }

    #[test]
    fn a_section_is_found_where_the_results_are_equal() {
        let mut other = record("a", 1);
        other.sections.push(pagetide_record::record::SectionInfo {
            kind: "series".into(),
            name: "access".into(),
            size: pagetide_quantity::Bytes(8),
            digest: "ab".into(),
        });
        let difference = first_divergence(&record("a", 1), &other).to_string();
        assert!(
            difference.starts_with("section series access was not there"),
            "{difference}"
        );
    }
}
