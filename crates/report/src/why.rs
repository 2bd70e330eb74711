//! An explanation in sentences: the same for every format.

use pagetide_compare::Comparison;
use pagetide_compare::explain::{
    Answer, Basis, Evidence, Explained, Explanation, Finding, Lead, Reading, Source,
};
use pagetide_quantity::Unit;

use crate::about::{self, BASELINE};
use crate::draw::clean::{clean, wrap};
use crate::draw::quantity::{Scale, show};
use crate::draw::{Align, Cell, Grid, Ink, Look};
use crate::html;

/// Findings under a comparison, and pieces of evidence behind each.
const SHORT: [usize; 2] = [3, 3];
/// Longest name in a sentence.
const NAME: usize = 40;

/// One statement of an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What is said.
    pub claim: String,
    /// What speaks for it, piece by piece.
    pub evidence: Vec<String>,
}

impl Statement {
    fn bare(claim: String) -> Self {
        Self {
            claim,
            evidence: Vec::new(),
        }
    }

    /// Claim and evidence in one line.
    pub fn line(&self) -> String {
        if self.evidence.is_empty() {
            return self.claim.clone();
        }
        format!("{}: {}", self.claim, self.evidence.join("; "))
    }
}

/// The explanation of a column as statements: what is explained, then the mechanisms with their evidence, then what
/// remains. In full, or what fits under a comparison.
pub fn statements(
    comparison: &Comparison,
    explained: &Explained,
    full: bool,
    ascii: bool,
) -> Vec<Statement> {
    let explanation = &explained.explanation;
    let [most, pieces] = if full { [usize::MAX; 2] } else { SHORT };
    let mut all = vec![Statement::bare(head(comparison, explained, ascii))];
    for (number, finding) in (1..).zip(explanation.findings.iter().take(most)) {
        all.push(Statement {
            claim: format!("{number}. {}", claim(finding, ascii)),
            evidence: pieces_of(&finding.evidence, pieces, ascii),
        });
    }
    if let Some(rest) = rest(explanation, most, ascii) {
        all.push(Statement::bare(rest));
    }
    if !explanation.leads.is_empty() {
        if full {
            all.extend(explanation.leads.iter().map(|lead| Statement {
                claim: format!("also changed, {}", lead.mechanism),
                evidence: pieces_of(&lead.evidence, pieces, ascii),
            }));
        } else {
            all.push(Statement::bare(leads(&explanation.leads)));
        }
    }
    if explanation.contradicts_elapsed() {
        let [a, b] = explanation.elapsed;
        all.push(Statement::bare(format!(
            "Caution: the timed trials differ the other way ({} in the mean)",
            signed(b - a, ascii)
        )));
    }
    all.extend(explained.notes.iter().cloned().map(Statement::bare));
    all
}

/// What is explained, and what it rests on.
fn head(comparison: &Comparison, explained: &Explained, ascii: bool) -> String {
    let explanation = &explained.explanation;
    let name = |index: usize| clean(about::name(comparison, index), NAME, ascii);
    let subject = format!("Why {} against {}", name(explained.column), name(BASELINE));
    let [a, b] = explanation.time;
    let difference = match explanation.answer {
        Answer::Identical => {
            return format!("{subject}: no difference, the records are equal to the bit");
        }
        Answer::NoDifference => format!("no difference, {}", both([a, b], Unit::Nanos, ascii)),
        Answer::Explained | Answer::NotFound => {
            let percent = if a > 0.0 {
                format!(", {:+.1} %", 100.0 * (b - a) / a)
            } else {
                String::new()
            };
            let percent = if ascii {
                percent
            } else {
                percent.replace('-', "−")
            };
            let missing = if explanation.answer == Answer::NotFound {
                "no explanation found for "
            } else {
                ""
            };
            let arrow = both([a, b], Unit::Nanos, ascii);
            format!("{missing}{arrow} ({}{percent})", signed(b - a, ascii))
        }
    };
    let basis = match &explanation.basis {
        Basis::Traced {
            seeds,
            records,
            attempts,
        } => {
            let passes = match (&seeds[..], records[0].len()) {
                ([seed], _) => format!("the observed pass of seed {seed}"),
                ([], 1) => "observed passes of different seeds".to_owned(),
                ([], many) => format!("{many} observed passes of different seeds (mean)"),
                (many, _) => format!("the observed passes of {} seeds (mean)", many.len()),
            };
            if *attempts {
                format!("the attempts' time in {passes}")
            } else {
                format!("processes' time in {passes}, pauses left out")
            }
        }
        Basis::Counters => {
            "elapsed time; no pass of both was observed (--observe), so only time off the CPU is attributed".to_owned()
        }
    };
    format!("{subject}: {difference} of {basis}")
}

fn claim(finding: &Finding, ascii: bool) -> String {
    let share = if finding.share < 0.0 {
        "works against it".to_owned()
    } else {
        format!("{:.0} % of it", 100.0 * finding.share)
    };
    let spread = match &finding.each[..] {
        [] | [_] => String::new(),
        each => {
            let low = each.iter().copied().fold(f64::INFINITY, f64::min);
            let high = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            format!(
                "; by seed {} to {}",
                signed(low, ascii),
                signed(high, ascii)
            )
        }
    };
    format!(
        "{} {} ({share}{spread})",
        finding.mechanism,
        signed(finding.effect, ascii)
    )
}

/// What the findings shown leave over.
fn rest(explanation: &Explanation, most: usize, ascii: bool) -> Option<String> {
    let hidden = explanation.findings.iter().skip(most);
    let other: f64 = hidden.map(|finding| finding.effect).sum::<f64>() + explanation.minor;
    let counts = |time: f64| time.abs() > 0.005 * explanation.difference().abs();
    let mut parts = Vec::new();
    if counts(other) {
        parts.push(format!("other mechanisms {}", signed(other, ascii)));
    }
    if counts(explanation.unexplained) && explanation.answer != Answer::NoDifference {
        parts.push(format!(
            "unexplained {}",
            signed(explanation.unexplained, ascii)
        ));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn leads(leads: &[Lead]) -> String {
    let names: Vec<String> = leads
        .iter()
        .map(|lead| lead.mechanism.to_string())
        .collect();
    format!("changed as well, without a time: {}", names.join(", "))
}

fn pieces_of(evidence: &[Evidence], most: usize, ascii: bool) -> Vec<String> {
    evidence
        .iter()
        .take(most)
        .map(|piece| self::piece(piece, ascii))
        .collect()
}

/// A piece of evidence: what, before, after.
fn piece(evidence: &Evidence, ascii: bool) -> String {
    let values = match (&evidence.before, &evidence.after) {
        (Reading::Number(before), Reading::Number(after)) => {
            both([*before, *after], evidence.unit, ascii)
        }
        (before, after) => {
            let text = |reading: &Reading| match reading {
                Reading::Number(number) => show(evidence.unit, *number, ascii),
                Reading::Text(text) => clean(text, NAME, ascii),
            };
            format!("{} {} {}", text(before), arrow(ascii), text(after))
        }
    };
    let source = match evidence.source {
        Source::Observed => " (observed)",
        Source::Timed | Source::Setting => "",
    };
    format!("{} {values}{source}", evidence.name)
}

/// Two values in one scale; pages and events go without the word and without fractions.
fn both(values: [f64; 2], unit: Unit, ascii: bool) -> String {
    let scale = Scale::of_all(unit, values);
    let shown = values.map(|value| match unit {
        Unit::Pages | Unit::Count => show(Unit::Count, value.round(), ascii),
        _ => scale.show(value, ascii),
    });
    format!("{} {} {}", shown[0], arrow(ascii), shown[1])
}

const fn arrow(ascii: bool) -> &'static str {
    if ascii { "->" } else { "→" }
}

/// A time with its sign.
fn signed(time: f64, ascii: bool) -> String {
    let sign = match (time < 0.0, ascii) {
        (true, true) => "-",
        (true, false) => "−",
        (false, _) => "+",
    };
    format!("{sign}{}", show(Unit::Nanos, time.abs(), ascii))
}

/// The explanations of one cell as they stand under its table in a terminal.
pub(crate) fn under_cell(comparison: &Comparison, cell: usize, look: &Look) -> String {
    let mut out = String::new();
    for explained in of_cell(comparison, cell) {
        for (place, statement) in statements(comparison, explained, false, look.ascii)
            .iter()
            .enumerate()
        {
            let (indent, ink) = if place == 0 {
                (2, Ink::Plain)
            } else {
                (4, Ink::Faint)
            };
            lines(&mut out, &statement.line(), indent, ink, look);
        }
    }
    out
}

/// Adds wrapped lines, the first after `indent` spaces, the others three further in.
fn lines(out: &mut String, text: &str, indent: usize, ink: Ink, look: &Look) {
    let room = look.width.saturating_sub(indent + 3);
    for (place, line) in wrap(text, room, look.ascii).iter().enumerate() {
        out.push_str(&" ".repeat(if place == 0 { indent } else { indent + 3 }));
        out.push_str(&look.ink(ink, line));
        out.push('\n');
    }
}

/// The explanations of one cell.
pub(crate) fn of_cell(comparison: &Comparison, cell: usize) -> impl Iterator<Item = &Explained> {
    comparison
        .explanations
        .iter()
        .filter(move |explained| explained.cell == cell)
}

/// The explanations in full, with where the time went, for `pagetide explain`.
pub fn explanations(comparison: &Comparison, look: &Look) -> String {
    let mut out = String::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        for explained in of_cell(comparison, place) {
            if !out.is_empty() {
                out.push('\n');
            }
            let label = clean(&cell.label, look.width, look.ascii);
            put!(out, "{}\n", look.ink(Ink::Strong, &label));
            let mut all = statements(comparison, explained, true, look.ascii).into_iter();
            if let Some(head) = all.next() {
                lines(&mut out, &head.line(), 0, Ink::Plain, look);
            }
            out.push_str(&parts(comparison, explained, look));
            let trials = explained.explanation.trials;
            for statement in all {
                lines(&mut out, &statement.claim, 2, Ink::Plain, look);
                for piece in &statement.evidence {
                    lines(&mut out, piece, 5, Ink::Faint, look);
                }
            }
            if !explained.explanation.findings.is_empty() {
                let text = format!(
                    "Counters are means of {} and {} timed trials; (observed) comes from the traced passes.",
                    trials[0], trials[1]
                );
                lines(&mut out, &text, 2, Ink::Faint, look);
            }
        }
    }
    if out.is_empty() {
        out.push_str("no explanation found: no cell has trials on both sides\n");
    }
    out
}

/// Where the time went, part by part.
fn parts(comparison: &Comparison, explained: &Explained, look: &Look) -> String {
    let explanation = &explained.explanation;
    let rows: Vec<_> = explanation
        .parts
        .iter()
        .filter(|(_, times)| times.iter().any(|time| *time > 0.0))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new([Align::Left, Align::Right, Align::Right, Align::Right]);
    let head = |index: usize| {
        Cell::new(
            Ink::Strong,
            clean(about::name(comparison, index), 16, look.ascii),
        )
    };
    grid.row([
        Cell::new(Ink::Faint, "part of the time"),
        head(BASELINE),
        head(explained.column),
        Cell::new(Ink::Faint, "difference"),
    ]);
    for (part, [a, b]) in rows {
        let scale = Scale::of_all(Unit::Nanos, [*a, *b]);
        let name = match serde_json::to_value(part) {
            Ok(serde_json::Value::String(name)) => name.replace('-', " "),
            _ => String::new(),
        };
        grid.row([
            Cell::plain(name),
            Cell::plain(scale.show(*a, look.ascii)),
            Cell::plain(scale.show(*b, look.ascii)),
            Cell::plain(signed(b - a, look.ascii)),
        ]);
    }
    grid.draw(look, 2)
}

/// The explanations for the page, the most important statements of each cell in their order.
pub fn for_page(comparison: &Comparison) -> Vec<html::Why> {
    let mut all = Vec::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        for explained in of_cell(comparison, place) {
            for (number, statement) in statements(comparison, explained, true, false)
                .into_iter()
                .enumerate()
            {
                let claim = if number == 0 {
                    format!("{}. {}", cell.label, statement.claim)
                } else {
                    statement.claim
                };
                all.push(html::Why {
                    claim,
                    evidence: statement.evidence,
                });
            }
        }
    }
    all
}
