//! Notes below a table: how to decide inconclusive verdicts, warnings, margins, confidence levels, methods.

use std::collections::BTreeMap;

use pagetide_compare::{Cell as Group, Comparison, MetricRow};
use pagetide_quantity::Unit;
use pagetide_verdict::judgement::{EffectKind, Note};
use pagetide_verdict::{Judgement, Margin, Verdict};

use crate::about;
use crate::draw::quantity::Scale;
use crate::draw::{TextStyle, clean};
use crate::terminal::effect;
use crate::terminal::summary::percent;

/// Maximum number of metrics named in a note.
const NAMED: usize = 6;
/// Maximum length of a name, in columns.
const NAME_CHARS: usize = 28;

/// Notes, each with the names it applies to. Names are in the order in which they were added.
#[derive(Default)]
struct NamesByNote {
    by: BTreeMap<String, Vec<String>>,
}

impl NamesByNote {
    fn add(&mut self, what: impl Into<String>, name: &str) {
        let names = self.by.entry(what.into()).or_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }

    /// Returns the notes with their names; the note with the most names comes first.
    fn ordered(&self) -> Vec<(&str, &[String])> {
        let mut all: Vec<_> = self
            .by
            .iter()
            .map(|(what, names)| (what.as_str(), names.as_slice()))
            .collect();
        all.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
        all
    }
}

/// Lists the first few names, and the number of the others.
fn few(names: &[String]) -> String {
    let text = names
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Returns notes below a cell's table with these rows.
pub fn notes(
    comparison: &Comparison,
    group: &Group,
    rows: &[&MetricRow],
    text_style: &TextStyle,
) -> Vec<String> {
    let mut out = Vec::new();
    let mut undecided = Vec::new();
    let (mut margins, mut remarks) = (NamesByNote::default(), NamesByNote::default());
    for row in rows {
        let name = clean(&row.name, NAME_CHARS, text_style.ascii);
        for (why, columns) in absences(row) {
            let why = clean(why, 200, text_style.ascii);
            // If only some kernels lack the metric, these kernels are named.
            let of = if columns.len() == row.values.len() {
                String::new()
            } else {
                let names: Vec<String> = columns
                    .iter()
                    .map(|index| {
                        clean(
                            about::name(comparison, *index),
                            NAME_CHARS,
                            text_style.ascii,
                        )
                    })
                    .collect();
                format!(" of {}", few(&names))
            };
            remarks.add(format!("No value{of} ({why})"), &name);
        }
        for index in about::shown(comparison, group) {
            let Some(judgement) = about::judgement(row, index) else {
                continue;
            };
            let full = if comparison.columns.len() > 2 {
                let column = about::name(comparison, index);
                format!("{name} of {}", clean(column, NAME_CHARS, text_style.ascii))
            } else {
                name.clone()
            };
            match &judgement.verdict {
                Verdict::Inconclusive { n_needed: Some(_) }
                    if effect::agreement(judgement).is_some() => {}
                Verdict::Inconclusive { n_needed: Some(n) } => {
                    undecided.push(format!("{full} about {n} seeds"));
                }
                Verdict::Inconclusive { n_needed: None } => {
                    remarks.add(
                        "Undecided, and no number of seeds is known to decide",
                        &full,
                    );
                }
                Verdict::Invalid { reason } => {
                    remarks.add(
                        format!("Invalid ({})", clean(reason, 200, text_style.ascii)),
                        &full,
                    );
                }
                _ => {}
            }
            for note in &judgement.notes {
                remarks.add(remark(note), &full);
            }
            if effect::parting(row, index).is_some() {
                remarks.add(
                    "Change is that of pairs with the same seed, and the medians say otherwise",
                    &full,
                );
            }
            if !judgement.outliers.is_empty() {
                remarks.add("With outliers, all of them used", &full);
            }
            if let Some(margin) = margin(judgement, row, text_style) {
                margins.add(margin, &name);
            }
        }
    }
    if !undecided.is_empty() {
        out.push(format!("To decide: {}.", few(&undecided)));
    }
    for (remark, names) in remarks.ordered() {
        out.push(format!("{remark}: {}.", few(names)));
    }
    for (index, (margin, names)) in margins.ordered().into_iter().enumerate() {
        match (index, out.last_mut()) {
            (0, _) => out.push(format!("Equivalent means within {margin}.")),
            (_, Some(last)) => {
                last.pop();
                put!(last, "; {margin} for {}.", few(names));
            }
            _ => {}
        }
    }
    out
}

/// Returns the reasons why columns have no value of this metric, each with the indices of its columns.
fn absences(row: &MetricRow) -> Vec<(&str, Vec<usize>)> {
    let mut found: Vec<(&str, Vec<usize>)> = Vec::new();
    for (index, values) in row.values.iter().enumerate() {
        let Some(why) = values
            .absent
            .as_deref()
            .filter(|_| values.values.is_empty())
        else {
            continue;
        };
        match found.iter_mut().find(|(known, _)| *known == why) {
            Some((_, columns)) => columns.push(index),
            None => found.push((why, vec![index])),
        }
    }
    found
}

/// Describes how the numbers in all tables were computed. Each method appears once, the most frequent first.
pub fn methods(comparison: &Comparison, text_style: &TextStyle) -> Vec<String> {
    let mut named = NamesByNote::default();
    for (index, row) in comparison.cells.iter().flat_map(|c| &c.metrics).enumerate() {
        for judgement in row.judgements.iter().flatten() {
            if let Some(method) = method(judgement, text_style) {
                named.add(method, &index.to_string());
            }
        }
    }
    named
        .ordered()
        .into_iter()
        .map(|(method, _)| format!("{method}."))
        .collect()
}

/// Formats a note of a judgement as a clause; names of metrics follow it.
pub fn remark(note: &Note) -> String {
    match note {
        Note::TooFew { least } => {
            format!("With fewer than {least} seeds no difference can be sure")
        }
        Note::AllAgree { n, least } => {
            format!("All {n} seeds agree; {least} would decide")
        }
        Note::MultipleOf { metric } => {
            format!(
                "A multiple of {}, and judged with it",
                clean(metric, NAME_CHARS, true)
            )
        }
        Note::SmallButReal => "Beyond chance, but too little to matter".to_owned(),
        Note::NotPositive => "With values of zero, so shown as differences".to_owned(),
        Note::ThinTail { beyond } => {
            format!("Resting on the {beyond:.0} accesses beyond the quantile")
        }
        Note::Dependent { worth, .. } => {
            format!(
                "Trials resemble the one before, so they are worth {worth:.0} of each side and the interval is widened; run both sides in one campaign"
            )
        }
        Note::ContradictoryPair { index } => {
            format!("Pair {index} was called identical, but its values differ")
        }
        // The crate `verdict` may add notes; notes that are unknown here are printed as debug text.
        #[allow(unreachable_patterns)]
        other => format!("{other:?}"),
    }
}

/// Returns the margin of a judgement as text, such as `±1 %`; `None` if no margin was used, or if the verdict is
/// invalid or identical.
pub fn margin(judgement: &Judgement, row: &MetricRow, text_style: &TextStyle) -> Option<String> {
    if matches!(
        judgement.verdict,
        Verdict::Invalid { .. } | Verdict::Identical
    ) {
        return None;
    }
    let used = judgement.margin.as_ref()?;
    let sign = text_style.or("±", "+-");
    Some(match used.margin {
        Margin::Relative(part) => format!("{sign}{} %", percent(part)),
        Margin::Absolute(size) if row.unit == Unit::Share => {
            format!("{sign}{} pt", percent(size))
        }
        Margin::Absolute(size) => {
            format!(
                "{sign}{}",
                Scale::of(row.unit, size).show(size, text_style.ascii)
            )
        }
    })
}

/// Describes how the effect and interval of a judgement were computed; `None` if the judgement has no interval, or if
/// the verdict is invalid or identical.
fn method(judgement: &Judgement, text_style: &TextStyle) -> Option<String> {
    if matches!(
        judgement.verdict,
        Verdict::Invalid { .. } | Verdict::Identical
    ) {
        return None;
    }
    let effect = judgement.effect.as_ref()?;
    effect.interval?;
    let kind = match effect.kind {
        EffectKind::Ratio => "Ratios",
        EffectKind::Difference => "Differences",
    };
    let methods = &judgement.methods;
    let text = format!("{kind}: {}; {}", methods.estimator, methods.interval);
    Some(clean(&text, 200, text_style.ascii))
}

/// Returns the confidence levels of a table's intervals as the heading of their column: `96.9 % interval`, or `95 % or
/// more` with the lowest if they differ; `interval` if there are no intervals.
pub fn level(rows: &[&MetricRow]) -> String {
    let levels = || {
        rows.iter()
            .flat_map(|row| row.judgements.iter().flatten())
            .filter(|judgement| judgement.verdict != Verdict::Identical)
            .filter_map(|judgement| judgement.effect.as_ref()?.interval)
            .map(|interval| interval.level)
    };
    let least = levels().fold(f64::INFINITY, f64::min);
    let most = levels().fold(0.0, f64::max);
    match (percent(least), percent(most)) {
        (least, _) if least == "inf" => "interval".to_owned(),
        (least, most) if least == most => format!("{least} % interval"),
        (least, _) => format!("{least} % or more"),
    }
}
