//! Result of a search for the first bad version: the effects of this version and of the one before it, and all steps.

use pagetide_compare::bisected::{BisectResult, BisectStep, Version};
use pagetide_quantity::Unit;
use serde::Serialize;

use crate::draw::clean::wrap;
use crate::draw::{Align, Ink, TextStyle, clean};
use crate::terminal::effect;
use crate::terminal::list::{Row, list};

/// Maximum length of a line about a version, in columns.
const LINE_CHARS: usize = 200;

/// Returns the whole result as text, without the comparison of the two versions.
pub fn bisect(result: &BisectResult, text_style: &TextStyle) -> String {
    let mut out = String::new();
    let mut lines = |text: &str, indent: usize, ink: Ink| {
        let room = text_style.width.clamp(40, 120).saturating_sub(indent);
        for line in wrap(&clean(text, 1000, text_style.ascii), room, text_style.ascii) {
            put!(out, "{:indent$}{}\n", "", text_style.ink(ink, &line));
        }
    };
    lines(&sentence(result), 0, Ink::Strong);
    if result.first_bad.len() > 1 {
        for version in &result.first_bad {
            lines(&named(version), 2, Ink::Plain);
        }
    }
    let last = result.first_bad.last();
    let of = |version: &Version| shown(result, version, text_style.ascii);
    let before = if result.before == result.good {
        "the good version itself".to_owned()
    } else {
        of(&result.before)
    };
    lines(
        &format!(
            "{} of {} against {}: before it ({}) {before}; with it {}.",
            result.metric,
            result.cell,
            result.good.name,
            result.before.name,
            last.map_or_else(String::new, of)
        ),
        0,
        Ink::Plain,
    );
    if let Some(margin) = result.margin {
        let text = format!(
            "A version counts as good where the interval of its difference lies within {:.1} %, half of what separates good and \
             bad; each step is judged at 95 %.",
            margin * 100.0
        );
        lines(&text, 0, Ink::Faint);
    }
    out.push('\n');
    let rows: Vec<StepRow> = result
        .steps
        .iter()
        .map(|step| StepRow {
            step,
            unit: result.unit,
            ascii: text_style.ascii,
        })
        .collect();
    out.push_str(&list(&rows, text_style));
    out.push('\n');
    out
}

fn named(version: &Version) -> String {
    format!("{} {}", version.name, version.what)
}

/// Returns the result of the search in one sentence.
pub fn sentence(result: &BisectResult) -> String {
    match result.first_bad.as_slice() {
        [first] => format!("The first bad version is {}.", named(first)),
        several => format!(
            "The first bad version is one of {}, of which all but the last could not be judged:",
            several.len()
        ),
    }
}

/// Returns the change and interval of a version compared with the good version, as text.
fn shown(result: &BisectResult, version: &Version, ascii: bool) -> String {
    let judgement = result
        .step(version)
        .and_then(|step| step.judgement.as_ref());
    judgement.map_or_else(
        || "nothing was measured".to_owned(),
        |judgement| {
            let change = effect::change(judgement, result.unit, ascii);
            let interval = effect::interval(judgement, result.unit, ascii);
            format!("{change} {interval}").trim_end().to_owned()
        },
    )
}

/// Describes the result of a step in one line.
pub fn step_text(step: &BisectStep) -> String {
    let seeds = match step.seeds {
        0 => String::new(),
        1 => " (1 seed)".to_owned(),
        seeds => format!(" ({seeds} seeds)"),
    };
    let why = match (&step.why, &step.judgement) {
        (Some(why), _) => format!(": {why}"),
        (None, Some(judgement)) => format!(": {}", judgement.verdict),
        (None, None) => String::new(),
    };
    format!("{} is {}{why}{seeds}", named(&step.version), word(step))
}

fn word(step: &BisectStep) -> &'static str {
    match step.mark.word() {
        "skip" => "skipped",
        word => word,
    }
}

/// A step as a row of the table.
#[derive(Serialize)]
struct StepRow<'a> {
    #[serde(flatten)]
    step: &'a BisectStep,
    unit: Unit,
    #[serde(skip)]
    ascii: bool,
}

impl Row for StepRow<'_> {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("version", Align::Left),
        ("is", Align::Left),
        ("change", Align::Right),
        ("interval", Align::Left),
        ("seeds", Align::Right),
        ("what", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        let step = self.step;
        let show = |show: fn(&pagetide_verdict::Judgement, Unit, bool) -> String| {
            let judgement = step.judgement.as_ref();
            judgement.map_or_else(String::new, |judgement| {
                show(judgement, self.unit, self.ascii)
            })
        };
        let what = match &step.why {
            Some(why) => format!("{}: {why}", step.version.what),
            None => step.version.what.clone(),
        };
        vec![
            step.version.name.clone(),
            word(step).to_owned(),
            show(effect::change),
            show(effect::interval),
            match step.seeds {
                0 => String::new(),
                seeds => seeds.to_string(),
            },
            clean(&what, LINE_CHARS, self.ascii),
        ]
    }
}
