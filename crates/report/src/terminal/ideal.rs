//! Results of the oracle (simulated replacement policies) as tables: faults of policies, curves, the list of policies,
//! and the model of 2002.

use pagetide_oracle::curve::Point;
use pagetide_oracle::rmap::{ABOUT, Test};
use pagetide_oracle::{About, Answer, Line, POLICIES, headroom};
use pagetide_record::Record;
use serde::Serialize;

use crate::draw::{Align, TextStyle, clean, count, grouped};
use crate::terminal::list::{Row, list};

/// A policy with its parameters and source, for the list of policies.
#[derive(Serialize)]
pub struct PolicyRow {
    policy: &'static str,
    summary: &'static str,
    parameters: Vec<String>,
    source: &'static str,
}

/// Returns a row for each policy that the oracle knows.
pub fn policies() -> Vec<PolicyRow> {
    let row = |about: &&'static About| PolicyRow {
        policy: about.name,
        summary: about.summary,
        parameters: about
            .parameters
            .iter()
            .map(|p| format!("{}={}", p.name, p.default))
            .collect(),
        source: about.source,
    };
    POLICIES.iter().map(row).collect()
}

impl Row for PolicyRow {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("policy", Align::Left),
        ("what it does", Align::Left),
        ("parameters", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.policy.to_owned(),
            self.summary.to_owned(),
            self.parameters.join(", "),
        ]
    }
}

impl Row for Line {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("memory", Align::Right),
        ("policy", Align::Left),
        ("faults", Align::Right),
        ("of references", Align::Right),
        ("headroom", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            count(u64::from(self.pages)),
            self.policy.clone(),
            count(self.faults),
            format!("{} %", grouped(self.share * 100.0, 2)),
            if self.headroom.is_finite() {
                grouped(self.headroom, 3)
            } else {
                "∞".to_owned()
            },
        ]
    }
}

/// A policy with the cost of its faults and write-backs.
#[derive(Serialize)]
struct CostRow<'a> {
    line: &'a Line,
    least: f64,
}

impl Row for CostRow<'_> {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("memory", Align::Right),
        ("policy", Align::Left),
        ("faults", Align::Right),
        ("write-backs", Align::Right),
        ("cost", Align::Right),
        ("of the bound", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        let cost = self.line.cost.unwrap_or_default();
        let times = headroom(cost, self.least);
        vec![
            count(u64::from(self.line.pages)),
            self.line.policy.clone(),
            count(self.line.faults),
            self.line.write_backs.map(count).unwrap_or_default(),
            cost_text(cost),
            if times.is_finite() {
                grouped(times, 3)
            } else {
                "∞".to_owned()
            },
        ]
    }
}

/// Formats a cost in units of faults, with one decimal unless it is an integer.
fn cost_text(cost: f64) -> String {
    grouped(cost, u8::from(cost.fract() != 0.0).into())
}

/// Renders the table of costs with an explanation. `write_cost` is the cost of a write-back in units of faults.
fn costs(answer: &Answer, write_cost: f64, text_style: &TextStyle) -> String {
    let least = |pages| answer.bounds.iter().find(|bound| bound.pages == pages);
    let rows: Vec<CostRow<'_>> = answer
        .lines
        .iter()
        .map(|line| CostRow {
            line,
            least: least(line.pages).map_or(0.0, |bound| bound.cost),
        })
        .collect();
    let mut text = list(&rows, text_style);
    let mut sentences = format!(
        "Cost is faults + {write_cost} × write-backs. A write-back is a dirty page that was evicted, also while memory was filled first; \
         what is dirty in memory at the end is none."
    );
    for bound in &answer.bounds {
        put!(
            sentences,
            " No policy costs less than {} with {} pages: {} faults, OPT's, and {} write-backs, below which none can go.",
            cost_text(bound.cost),
            count(u64::from(bound.pages)),
            count(bound.faults),
            count(bound.write_backs)
        );
    }
    sentences.push_str(
        " It is a bound: whether a policy can have both at once is not computed. OPT here saves faults first.",
    );
    text.push('\n');
    for line in clean::wrap(&sentences, text_style.width, text_style.ascii) {
        put!(
            text,
            "{}\n",
            clean(&line, text_style.width, text_style.ascii)
        );
    }
    text
}

impl Row for Point {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("memory", Align::Right),
        ("lru faults", Align::Right),
        ("opt faults", Align::Right),
        ("headroom of lru", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        let error = |error| format!(" ± {}", grouped(error, 0));
        vec![
            count(u64::from(self.pages)),
            grouped(self.lru, 0) + &self.lru_error.map(error).unwrap_or_default(),
            self.opt.map(count).unwrap_or_default(),
            self.opt
                .map(|opt| grouped(headroom(self.lru, opt as f64), 3))
                .unwrap_or_default(),
        ]
    }
}

/// Faults measured in a record.
pub struct Measurement {
    /// Name of the record's variant.
    pub variant: String,
    /// Number of references that did not find their page in memory.
    pub faults: f64,
}

impl Measurement {
    /// Reads the number of faults in a record; `None` if the record has no number for this metric.
    pub fn of(record: &Record) -> Option<Self> {
        Some(Self {
            variant: record.subject.variant.name.clone(),
            faults: record.metric("faults")?.value.number()?,
        })
    }
}

/// Results of the oracle. If a record was given, they are shown together with its measured faults.
#[derive(Serialize)]
pub struct IdealView {
    #[serde(flatten)]
    answer: Answer,
    #[serde(skip)]
    variant: Option<String>,
    measured_faults: Option<f64>,
    measured_headroom: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<String>,
}

impl IdealView {
    /// Combines the oracle's results with measured faults, which are compared with the faults of the optimal policy if
    /// it is among the results.
    pub fn of(answer: Answer, measured: Option<Measurement>) -> Self {
        let opt = answer.lines.iter().find(|line| line.policy == "opt");
        let measured = measured.zip(opt.map(|line| line.faults as f64));
        Self {
            variant: measured
                .as_ref()
                .map(|(measured, _)| measured.variant.clone()),
            measured_faults: measured.as_ref().map(|(measured, _)| measured.faults),
            measured_headroom: measured.map(|(measured, best)| headroom(measured.faults, best)),
            recorded: None,
            answer,
        }
    }

    /// Returns the view with a sentence on recorded references below the table; `None` for no sentence.
    #[must_use]
    pub fn with_recorded(self, recorded: Option<String>) -> Self {
        Self { recorded, ..self }
    }

    /// Renders the results as a table.
    pub fn draw(&self, text_style: &TextStyle) -> String {
        let answer = &self.answer;
        let mut text = format!(
            "{} references to {} pages",
            count(answer.references),
            count(u64::from(answer.distinct))
        );
        if answer.lead > 0 {
            put!(
                text,
                ", after filling {} pages in order",
                count(u64::from(answer.lead))
            );
        }
        text.push_str("\n\n");
        match answer.write_cost {
            Some(cost) => text.push_str(&costs(answer, cost, text_style)),
            None => text.push_str(&list(&answer.lines, text_style)),
        }
        for sentence in nothing_told(answer) {
            put!(text, "{sentence}\n");
        }
        if let Some(sentence) = &self.recorded {
            put!(text, "\n{sentence}\n");
        }
        if let (Some(variant), Some(faults), Some(times)) =
            (&self.variant, self.measured_faults, self.measured_headroom)
        {
            put!(
                text,
                "\n{}: {} references did not find their page: headroom {}\n",
                clean(variant, 60, text_style.ascii),
                grouped(faults, 0),
                grouped(times, 3)
            );
        }
        text
    }
}

/// Returns a sentence for each memory size that holds all pages, and for each at which several policies have the same
/// number of faults, so that these sizes do not distinguish policies.
fn nothing_told(answer: &Answer) -> Vec<String> {
    let mut sizes: Vec<u32> = answer.lines.iter().map(|line| line.pages).collect();
    sizes.dedup();
    let told = |pages: u32| {
        let mut of_size = answer.lines.iter().filter(|line| line.pages == pages);
        let first = of_size.next()?;
        let alike = of_size.clone().all(|line| line.faults == first.faults);
        let several = of_size.next().is_some();
        let room = count(u64::from(pages));
        if pages >= answer.distinct {
            Some(format!(
                "All pages fit into {room}: only first uses fault, whatever the policy."
            ))
        } else {
            (alike && several).then(|| {
                format!("With {room} pages these policies fault alike: this string does not tell them apart.")
            })
        }
    };
    sizes.into_iter().filter_map(told).collect()
}

impl Row for Test {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("order", Align::Left),
        ("pages", Align::Right),
        ("2.4.19", Align::Right),
        ("rmap14a", Align::Right),
        ("change", Align::Right),
        ("reads from swap", Align::Right),
        ("often used, kept", Align::Right),
        ("the paper", Align::Left),
    ];

    fn cells(&self) -> Vec<String> {
        let (before, after) = (&self.before, &self.after);
        let seconds = |seconds| format!("{} s", grouped(seconds, 1));
        let percent = |share: f64| format!("{} %", grouped(share * 100.0, 0));
        vec![
            self.order.to_owned(),
            count(u64::from(self.pages)),
            seconds(before.seconds),
            seconds(after.seconds),
            seconds(after.seconds - before.seconds),
            format!("{} → {}", count(before.faults), count(after.faults)),
            format!(
                "{} → {}",
                percent(before.used_kept),
                percent(after.used_kept)
            ),
            self.paper.to_owned(),
        ]
    }
}

/// Renders the results of the tests of 2002, with an explanation of what the model includes.
pub fn rmap(tests: &[Test], text_style: &TextStyle) -> String {
    let mut text = list(tests, text_style);
    text.push('\n');
    for line in clean::wrap(ABOUT, text_style.width, text_style.ascii) {
        put!(
            text,
            "{}\n",
            clean(&line, text_style.width, text_style.ascii)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn answer(distinct: u32, lines: &[(&str, u32, u64)]) -> Answer {
        let line = |&(policy, pages, faults): &(&str, u32, u64)| Line {
            policy: policy.to_owned(),
            pages,
            faults,
            share: faults as f64 / 100.0,
            headroom: 1.0,
            windows: Vec::new(),
            seconds: 0.0,
            write_backs: None,
            cost: None,
        };
        Answer {
            references: 100,
            lead: 0,
            distinct,
            lines: lines.iter().map(line).collect(),
            write_cost: None,
            bounds: Vec::new(),
        }
    }

    #[test]
    fn a_string_that_tells_policies_not_apart_says_so() {
        let lines = [
            ("opt", 10, 90),
            ("lru", 10, 90),
            ("opt", 20, 70),
            ("lru", 20, 80),
            ("opt", 50, 50),
            ("lru", 50, 50),
        ];
        assert_eq!(
            nothing_told(&answer(50, &lines)),
            [
                "With 10 pages these policies fault alike: this string does not tell them apart.",
                "All pages fit into 50: only first uses fault, whatever the policy."
            ]
        );
        // A single policy is not compared with other policies.
        assert!(nothing_told(&answer(50, &lines[..1])).is_empty());
    }
}
