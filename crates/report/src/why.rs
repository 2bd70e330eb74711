//! An explanation in sentences: the same for every format.

use pagetide_compare::Comparison;
use pagetide_compare::explain::{
    Answer, Basis, CellExplanation, Claim, Evidence, Explanation, Finding, LIST_MOVES, Lead,
    Reading, Source,
};
use pagetide_quantity::Unit;
use pagetide_record::Subject;
use pagetide_verdict::Verdict;
use pagetide_verdict::judgement::EffectKind;

use crate::about::{self, BASELINE};
use crate::draw::clean::{clean, wrap};
use crate::draw::quantity::{Scale, show};
use crate::draw::{Align, Cell, Grid, Ink, Look};

/// Findings under a comparison, and pieces of evidence behind each.
const SHORT: [usize; 2] = [3, 3];
/// Lines that an explanation takes under a table of a terminal at most; `pagetide explain` has it in full.
const LINES: usize = 8;
/// What an explanation under a table says, the most that fits first.
const DETAILS: [Detail; 7] = [
    Detail::of(3, 3),
    Detail::of(3, 1),
    Detail::of(3, 1).plain(true),
    Detail::of(3, 1).plain(false),
    Detail::of(2, 1).plain(true),
    Detail::of(2, 1).plain(false),
    Detail::of(1, 1).plain(false),
];
/// Longest name in a sentence.
const NAME_CHARS: usize = 40;

/// How much of an explanation is said.
#[derive(Clone, Copy)]
struct Detail {
    /// Mechanisms, and pieces of evidence behind each.
    most: usize,
    pieces: usize,
    /// Whether all that there is to say is said.
    is_full: bool,
    /// Whether the values of the table and intervals are left out.
    is_plain: bool,
    /// Whether what mechanisms leave over is said.
    has_rest: bool,
}

impl Detail {
    const FULL: Self = Self {
        most: usize::MAX,
        pieces: usize::MAX,
        is_full: true,
        is_plain: false,
        has_rest: true,
    };

    const fn of(most: usize, pieces: usize) -> Self {
        Self {
            most,
            pieces,
            is_full: false,
            is_plain: false,
            has_rest: true,
        }
    }

    /// Without the values that stand in the table, and without intervals.
    const fn plain(self, has_rest: bool) -> Self {
        Self {
            is_plain: true,
            has_rest,
            ..self
        }
    }
}

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
    explained: &CellExplanation,
    full: bool,
    ascii: bool,
) -> Vec<Statement> {
    let [most, pieces] = SHORT;
    let detail = if full {
        Detail::FULL
    } else {
        Detail::of(most, pieces)
    };
    detailed(comparison, explained, detail, ascii)
}

/// The statements in so much detail.
fn detailed(
    comparison: &Comparison,
    explained: &CellExplanation,
    detail: Detail,
    ascii: bool,
) -> Vec<Statement> {
    let explanation = &explained.explanation;
    if is_imported(comparison, explained) {
        return vec![Statement::bare(head(comparison, explained, ascii))];
    }
    let Detail { most, pieces, .. } = detail;
    let short = detail
        .is_plain
        .then(|| short_head(comparison, explained, ascii));
    let head = short
        .flatten()
        .unwrap_or_else(|| head(comparison, explained, ascii));
    let mut all = vec![Statement::bare(head)];
    for (number, finding) in (1..).zip(explanation.findings.iter().take(most)) {
        let evidence = pieces_of(explanation, &finding.evidence, pieces, ascii);
        all.push(if detail.is_plain {
            let (mechanism, effect) = (finding.mechanism, moved(finding.effect, ascii));
            let shown = in_brackets(&evidence.join("; "));
            Statement::bare(format!("{number}. {mechanism}, {effect}{shown}"))
        } else {
            Statement {
                claim: format!("{number}. {}", claim(explanation, finding, ascii)),
                evidence,
            }
        });
    }
    let rest = rest(explanation, most, ascii).filter(|_| detail.has_rest);
    all.extend(rest.map(Statement::bare));
    let (of_counts, beside): (Vec<&Lead>, Vec<&Lead>) =
        explanation.leads.iter().partition(|lead| lead.of.is_some());
    let told = |lead: &&Lead| Statement {
        claim: match &lead.of {
            Some(metric) => {
                format!(
                    "what moved {}: {}",
                    clean(metric, NAME_CHARS, ascii),
                    lead.mechanism
                )
            }
            None => format!("also changed, {}", lead.mechanism),
        },
        evidence: pieces_of(explanation, &lead.evidence, pieces, ascii),
    };
    all.extend(of_counts.iter().map(told));
    if detail.is_full {
        all.extend(beside.iter().map(told));
    } else if !beside.is_empty() {
        all.push(Statement::bare(leads(&beside)));
    }
    if let Some(changed) = changed(explanation, most, ascii) {
        all.push(Statement::bare(changed));
    }
    all.extend(explained.notes.iter().cloned().map(Statement::bare));
    all
}

/// The reasons of a sure difference in two or three lines: each mechanism with what it cost or saved and one counter that shows
/// it. Empty where there is nothing to explain.
///
/// At most `most` mechanisms are named.
pub fn brief(comparison: &Comparison, explained: &CellExplanation, most: usize) -> String {
    let explanation = &explained.explanation;
    let Some(claim) = &explanation.claim else {
        return String::new();
    };
    let subject = match comparison.columns.len() {
        ..=2 => "Why".to_owned(),
        _ => format!(
            "Why {}",
            clean(about::name(comparison, explained.column), NAME_CHARS, true)
        ),
    };
    let whole = explanation.difference();
    let reasons: Vec<String> = explanation
        .findings
        .iter()
        .take(most)
        .map(|finding| {
            let shown = pieces_of(explanation, &finding.evidence, 1, true);
            let effect = if finding.effect * whole > 0.0 {
                let effect = show(Unit::Nanos, finding.effect.abs(), true);
                format!("{effect} of {}", moved(whole, true))
            } else {
                format!("against the rest {}", moved(finding.effect, true))
            };
            format!(
                "{}, {effect}{}",
                finding.mechanism,
                in_brackets(&shown.join(""))
            )
        })
        .collect();
    let reasons = match (explanation.answer, &reasons[..]) {
        (Answer::Explained, [_, ..]) => reasons.join("; "),
        _ => "no sure cause found".to_owned(),
    };
    let seeds = match &explanation.basis {
        Basis::Traced { records, .. } => match records[0].len() {
            1 => "1 observed seed".to_owned(),
            many => format!("{many} observed seeds"),
        },
        Basis::Counters => "counters of the timed trials".to_owned(),
    };
    let metric = clean(&claim.metric, NAME_CHARS, true);
    format!("{subject} {metric} ({seeds}): {reasons}.")
}

/// A sure difference and its reasons in one sentence, for beside a picture of them. Empty where there is nothing to explain.
pub(crate) fn reasons(explained: &CellExplanation) -> String {
    let explanation = &explained.explanation;
    let Some(claim) = &explanation.claim else {
        return String::new();
    };
    let all: Vec<String> = explanation
        .findings
        .iter()
        .take(SHORT[0])
        .map(|finding| {
            let shown = pieces_of(explanation, &finding.evidence, 1, false);
            let effect = moved(finding.effect, false);
            format!(
                "{}, {effect}{}",
                finding.mechanism,
                in_brackets(&shown.join(""))
            )
        })
        .collect();
    format!(
        "{}. Of {} in {}: {}.",
        of_claim(claim, false),
        moved(explanation.difference(), false),
        basis(&explanation.basis),
        all.join("; ")
    )
}

/// What is explained, and what it rests on.
fn head(comparison: &Comparison, explained: &CellExplanation, ascii: bool) -> String {
    let explanation = &explained.explanation;
    let name = |index: usize| clean(about::name(comparison, index), NAME_CHARS, ascii);
    let subject = format!("Why {} against {}", name(explained.column), name(BASELINE));
    let claim = match (&explanation.claim, explanation.answer) {
        (_, Answer::Identical) => {
            return format!("{subject}: no difference, the records are equal to the bit");
        }
        _ if is_imported(comparison, explained) => {
            return format!("{subject}: imported results do not tell");
        }
        (None, _) if explanation.changed.iter().any(is_time) => {
            return format!(
                "{subject}: no sure difference in a whole time to explain; quantiles, maxima and times below a tenth of all processes' time are not explained"
            );
        }
        (None, _) | (_, Answer::NotSure) => {
            return format!("{subject}: no sure difference in time to explain");
        }
        (Some(claim), _) => claim,
    };
    let found = match explanation.answer {
        Answer::Explained => "",
        _ => "no sure cause found: ",
    };
    let [a, b] = explanation.time;
    let of_time = both([a, b], Unit::Nanos, ascii) + &in_brackets(&percent(b - a, a, ascii));
    let relation = match explanation.answer {
        Answer::Contrary => "; these differ the other way, so they explain nothing",
        _ if explanation.is_another_time() => {
            "; not the same time, so read the rows as parts of this one"
        }
        _ => "",
    };
    format!(
        "{subject}: {found}{}; in {}, {of_time}{relation}",
        of_claim(claim, ascii),
        basis(&explanation.basis)
    )
}

/// What is explained, without the values that stand in the table above; `None` where no cause was found, which takes more
/// words.
fn short_head(comparison: &Comparison, explained: &CellExplanation, ascii: bool) -> Option<String> {
    let explanation = &explained.explanation;
    let claim = explanation.claim.as_ref()?;
    if explanation.answer != Answer::Explained {
        return None;
    }
    let of = if comparison.columns.len() > 2 {
        let name = about::name(comparison, explained.column);
        format!(" of {}", clean(name, NAME_CHARS, ascii))
    } else {
        String::new()
    };
    let relation = if explanation.is_another_time() {
        ", which is not the same time"
    } else {
        ""
    };
    let rests_on = match &explanation.basis {
        Basis::Traced {
            records, attempts, ..
        } => {
            let time = if *attempts {
                "the attempts'"
            } else {
                "all processes'"
            };
            match records[0].len() {
                1 => format!("{time} time (1 seed)"),
                many => format!("{time} time ({many} seeds)"),
            }
        }
        Basis::Counters => "elapsed time (counters alone)".to_owned(),
    };
    Some(format!(
        "Why {}{of} {}: {} in {rests_on}{relation}",
        clean(&claim.metric, NAME_CHARS, ascii),
        claim.verdict,
        moved(explanation.difference(), ascii),
    ))
}

/// Whether the records come from elsewhere, with results alone.
fn is_imported(comparison: &Comparison, explained: &CellExplanation) -> bool {
    let cell = comparison.cells.get(explained.cell);
    let subject = cell.and_then(|cell| cell.subject.as_ref());
    subject.is_some_and(Subject::is_imported)
}

/// Whether a time surely became shorter or longer.
fn is_time(claim: &Claim) -> bool {
    claim.unit == Unit::Nanos && claim.verdict != Verdict::Changed
}

/// What an explanation rests on.
fn basis(basis: &Basis) -> String {
    let (seeds, records, attempts) = match basis {
        Basis::Traced {
            seeds,
            records,
            attempts,
        } => (seeds, records, *attempts),
        Basis::Counters => {
            return "elapsed time of the timed trials (no pass of both was observed, --observe, so only time off the CPU is attributed)".to_owned();
        }
    };
    let passes = match (&seeds[..], records[0].len()) {
        ([seed], _) => format!("the observed pass of seed {seed}"),
        ([], 1) => "observed passes of different seeds".to_owned(),
        ([], many) => format!("{many} observed passes of different seeds"),
        (many, _) => format!("the observed passes of {} seeds", many.len()),
    };
    if attempts {
        format!("the attempts' time of {passes}")
    } else {
        format!("all processes' time of {passes}")
    }
}

/// A claim with its verdict and the medians and change of the table: `access-time improved, 1.20 → 1.05 s (−12.5 %)`.
fn of_claim(claim: &Claim, ascii: bool) -> String {
    let change = match claim.kind {
        EffectKind::Ratio => percent(claim.effect - 1.0, 1.0, ascii),
        EffectKind::Difference if claim.unit == Unit::Share => points(claim.effect, ascii),
        EffectKind::Difference => percent(claim.effect, claim.medians[0], ascii),
    };
    format!(
        "{} {}, {}{}",
        clean(&claim.metric, NAME_CHARS, ascii),
        claim.verdict,
        both(claim.medians, claim.unit, ascii),
        in_brackets(&change)
    )
}

/// Behind a value; nothing where there is nothing to say.
fn in_brackets(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({text})")
    }
}

/// Differences beyond ten times the baseline are not told as percentages.
const MOST_TIMES: f64 = 10.0;

/// A difference as a percentage with its sign; empty where there is nothing to compare with, or so little that the two
/// values say it better.
fn percent(difference: f64, of: f64, ascii: bool) -> String {
    if of == 0.0 || (difference / of).abs() > MOST_TIMES || !(difference / of).is_finite() {
        return String::new();
    }
    let text = format!("{:+.1} %", 100.0 * difference / of.abs());
    if ascii {
        text
    } else {
        text.replace('-', "−")
    }
}

/// A difference of shares, as the table of verdicts shows it.
fn points(difference: f64, ascii: bool) -> String {
    format!(
        "{} pt",
        crate::draw::quantity::signed(100.0 * difference, 1, ascii)
    )
}

/// A mechanism's effect in words: `47 ms less (62 %; 41 to 53 ms less)`.
fn claim(explanation: &Explanation, finding: &Finding, ascii: bool) -> String {
    let word = if finding.effect < 0.0 { "less" } else { "more" };
    let [low, high] = finding.interval.map(f64::abs);
    let scale = Scale::of_all(Unit::Nanos, [low, high]);
    let sure = format!(
        "surely {} to {}",
        scale.show(low.min(high), ascii),
        scale.show(low.max(high), ascii)
    );
    let share = match finding.share {
        Some(share) if share <= 1.0 => format!("{:.0} % of it; ", 100.0 * share),
        None if finding.effect * explanation.difference() < 0.0 => "against the rest; ".to_owned(),
        _ => String::new(),
    };
    format!(
        "{}: {} {word} ({share}{sure})",
        finding.mechanism,
        show(Unit::Nanos, finding.effect.abs(), ascii)
    )
}

/// What the findings shown leave over.
fn rest(explanation: &Explanation, most: usize, ascii: bool) -> Option<String> {
    if explanation.answer == Answer::NotSure || explanation.answer == Answer::Identical {
        return None;
    }
    let hidden = explanation.findings.iter().skip(most);
    let other: f64 = hidden.map(|finding| finding.effect).sum::<f64>() + explanation.minor;
    let counts = |time: f64| time.abs() > 0.005 * explanation.difference().abs();
    let mut parts = Vec::new();
    if counts(other) {
        parts.push(format!(
            "other, small or not sure in sign: {}",
            moved(other, ascii)
        ));
    }
    if counts(explanation.unexplained) {
        parts.push(format!(
            "unexplained: {}",
            moved(explanation.unexplained, ascii)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What else surely changed, where that is all there is to say, or in full.
fn changed(explanation: &Explanation, most: usize, ascii: bool) -> Option<String> {
    let is_all = explanation.claim.is_none();
    if explanation.changed.is_empty() || !(is_all || most == usize::MAX) {
        return None;
    }
    let shown = most.saturating_mul(2);
    let mut texts: Vec<String> = explanation
        .changed
        .iter()
        .take(shown)
        .map(|claim| of_claim(claim, ascii))
        .collect();
    let hidden = explanation.changed.len().saturating_sub(shown);
    if hidden > 0 {
        texts.push(format!("{hidden} more"));
    }
    Some(format!("surely changed: {}", texts.join("; ")))
}

/// A time that grew or shrank, in words.
fn moved(time: f64, ascii: bool) -> String {
    let word = if time < 0.0 { "less" } else { "more" };
    format!("{} {word}", show(Unit::Nanos, time.abs(), ascii))
}

fn leads(leads: &[&Lead]) -> String {
    let names: Vec<String> = leads
        .iter()
        .map(|lead| lead.mechanism.to_string())
        .collect();
    format!("changed as well, without a time: {}", names.join(", "))
}

fn pieces_of(
    explanation: &Explanation,
    evidence: &[Evidence],
    most: usize,
    ascii: bool,
) -> Vec<String> {
    let is_traced = matches!(explanation.basis, Basis::Traced { .. });
    let mut left = most;
    evidence
        .iter()
        .filter(|piece| {
            // What a kernel's other code does to the lists stands beside what it comes to.
            if LIST_MOVES.contains(&piece.name.as_str()) {
                return left > 0;
            }
            let is_shown = left > 0;
            left = left.saturating_sub(1);
            is_shown
        })
        .map(|piece| self::piece(piece, is_traced, ascii))
        .collect()
}

/// A piece of evidence: what, before, after.
fn piece(evidence: &Evidence, is_traced: bool, ascii: bool) -> String {
    let values = match (&evidence.before, &evidence.after) {
        (Reading::Number(before), Reading::Number(after)) => {
            both([*before, *after], evidence.unit, ascii)
        }
        (before, after) => {
            let text = |reading: &Reading| match reading {
                Reading::Number(number) => show(evidence.unit, *number, ascii),
                Reading::Text(text) => clean(text, NAME_CHARS, ascii),
            };
            format!("{} {} {}", text(before), arrow(ascii), text(after))
        }
    };
    let source = match evidence.source {
        Source::Timed if is_traced => " (timed trials)",
        Source::Timed | Source::Observed | Source::Setting => "",
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

/// The explanations of one cell as they stand under its table in a terminal: each in as much detail as a few lines hold.
pub(crate) fn under_cell(comparison: &Comparison, cell: usize, look: &Look) -> String {
    let mut out = String::new();
    for explained in of_cell(comparison, cell) {
        let fits = |text: &String| text.lines().count() <= LINES;
        let mut all = DETAILS.iter().map(|detail| {
            let statements = detailed(comparison, explained, *detail, look.ascii);
            under_table(&statements, look)
        });
        let text = all.find(fits).unwrap_or_else(|| {
            let least = DETAILS[DETAILS.len() - 1];
            let all = under_table(&detailed(comparison, explained, least, look.ascii), look);
            let kept = all.lines().take(LINES - 1);
            let mut cut: String = kept.flat_map(|line| [line, "\n"]).collect();
            lines(&mut cut, "`pagetide explain` says all", 4, Ink::Faint, look);
            cut
        });
        out.push_str(&text);
    }
    out
}

/// Statements as lines, the first less far in.
fn under_table(statements: &[Statement], look: &Look) -> String {
    let mut out = String::new();
    for (place, statement) in statements.iter().enumerate() {
        let (indent, ink) = if place == 0 {
            (2, Ink::Plain)
        } else {
            (4, Ink::Faint)
        };
        lines(&mut out, &statement.line(), indent, ink, look);
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
pub(crate) fn of_cell(
    comparison: &Comparison,
    cell: usize,
) -> impl Iterator<Item = &CellExplanation> {
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
            for statement in all {
                lines(&mut out, &statement.claim, 2, Ink::Plain, look);
                for piece in &statement.evidence {
                    lines(&mut out, piece, 5, Ink::Faint, look);
                }
            }
            let sources = sources(&explained.explanation);
            if !sources.is_empty() {
                lines(&mut out, &sources, 2, Ink::Faint, look);
            }
        }
    }
    if out.is_empty() {
        out.push_str("no explanation found: no cell has trials on both sides\n");
    }
    out
}

/// Which trials the effects and their evidence are of.
fn sources(explanation: &Explanation) -> String {
    let [a, b] = explanation.trials;
    match (&explanation.findings[..], &explanation.basis) {
        ([], _) => String::new(),
        (_, Basis::Traced { .. }) => format!(
            "Effects and counters are means of the observed passes, with intervals of 95 % over them; verdicts are of {a} and {b} timed trials."
        ),
        (_, Basis::Counters) => format!(
            "Effects and counters are means of {a} and {b} timed trials, with intervals of 95 % over them."
        ),
    }
}

/// Where the time went, part by part.
fn parts(comparison: &Comparison, explained: &CellExplanation, look: &Look) -> String {
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
