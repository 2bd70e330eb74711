//! Draws the causes of a difference in time as a waterfall chart from A's time to B's: each bar starts where the
//! previous one ends.
//!
//! Both times start at the left edge, so that the longer bar is the longer time. If the two times differ only by a
//! small part, the bars would look equal. In this case a common part of both bars is left out, which a mark shows.

use pagetide_compare::explain::{Answer, CellExplanation};
use pagetide_quantity::Unit;

use super::Input;
use super::escape::text;
use super::strip::{HEIGHT, PAD};
use crate::about::{self, BASELINE};
use crate::draw::quantity::{Scale, show};

/// Width of the pictures in pixels.
const WIDTH: f64 = 420.0;

/// Width of the mark for the part left out of both times, in pixels.
const STUB: f64 = 44.0;
/// Both times are drawn completely if the first time is at most this multiple of the range that the bars cover.
const WHOLE: f64 = 2.0;

/// A bar of the waterfall, from one time to another.
struct Step {
    name: String,
    from: f64,
    to: f64,
    interval: Option<[f64; 2]>,
    class: &'static str,
}

/// Writes the bars of one explanation; nothing if the explanation has no findings, or if nothing was to be explained.
pub(crate) fn plot(input: &Input<'_>, explained: &CellExplanation, out: &mut String) {
    let explanation = &explained.explanation;
    if !matches!(explanation.answer, Answer::Explained | Answer::NotFound)
        || explanation.findings.is_empty()
    {
        return;
    }
    let steps = steps(explained);
    let [a, b] = explanation.time;
    let ends = steps.iter().flat_map(|step| {
        let whisker = step.interval.map(|i| i.map(|end| step.from + end));
        [step.from, step.to]
            .into_iter()
            .chain(whisker.into_iter().flatten())
    });
    let (low, high) = ends.fold((0.0_f64, 0.0_f64), |(low, high), at| {
        (low.min(at), high.max(at))
    });
    let is_whole = a <= WHOLE * (high - low);
    // Zero time, at which both bars start.
    let low = if is_whole { low.min(-a) } else { low };
    let span = (high - low).max(f64::MIN_POSITIVE);
    let left = if is_whole { PAD } else { PAD + STUB };
    let x = |at: f64| left + (at - low) / span * (WIDTH - PAD - left);
    let edge = if is_whole { x(-a) } else { PAD };
    let edges = Edges { edge, is_whole };
    let name = |side: usize| text(about::name(input.comparison, side), 60);
    put!(
        out,
        "<table class=\"waterfall\"><caption>Time, from {} to {}.{} A line is the interval of an effect over the observed seeds, at 95 %.</caption><tbody>\n",
        name(BASELINE),
        name(explained.column),
        if is_whole {
            ""
        } else {
            " Where two strokes cross both times, a part that is common to both is left out."
        }
    );
    let mut row = |step: &Step, value: &str| {
        put!(
            out,
            "<tr{}><th scope=\"row\">{}</th><td>{}</td><td class=\"number\">{value}</td></tr>\n",
            if step.class == "whole" {
                " class=\"end\""
            } else {
                ""
            },
            text(&step.name, 80),
            picture(step, edges, &x)
        );
    };
    let begin = Step {
        name: about::name(input.comparison, BASELINE).to_owned(),
        from: 0.0,
        to: 0.0,
        interval: None,
        class: "whole",
    };
    row(&begin, &show(Unit::Nanos, a, false));
    let scale = Scale::of_all(Unit::Nanos, [span]);
    let signed = |effect: f64| {
        let sign = if effect < 0.0 { "−" } else { "+" };
        format!("{sign}{}", scale.show(effect.abs(), false))
    };
    for step in &steps {
        row(step, &signed(step.to - step.from));
    }
    let end = Step {
        name: about::name(input.comparison, explained.column).to_owned(),
        from: 0.0,
        to: explanation.difference(),
        interval: None,
        class: "whole",
    };
    let both = format!(
        "{} <small>{}</small>",
        show(Unit::Nanos, b, false),
        signed(explanation.difference())
    );
    row(&end, &both);
    out.push_str("</tbody></table>\n");
}

/// Where the bars of the two whole times start, and true if these bars are drawn completely.
#[derive(Clone, Copy)]
struct Edges {
    edge: f64,
    is_whole: bool,
}

/// Draws a bar with its interval; `x` maps a difference from the baseline to a position.
fn picture(step: &Step, edges: Edges, x: &dyn Fn(f64) -> f64) -> String {
    let (from, to) = match step.class {
        "whole" => (edges.edge, x(step.to)),
        _ => (x(step.from.min(step.to)), x(step.from.max(step.to))),
    };
    let mut picture = format!(
        "<svg class=\"step {}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" aria-hidden=\"true\">\
         <path class=\"null\" d=\"M{1:.1} 0V{HEIGHT}\"/><rect class=\"effect\" x=\"{2:.1}\" y=\"4\" width=\"{3:.1}\" height=\"14\"/>",
        step.class,
        x(0.0),
        // A thin bar marks the position if nothing has been added yet.
        if from < to { from } else { from - 1.0 },
        (to - from).max(2.0)
    );
    if let Some(interval) = step.interval {
        let [low, high] = interval.map(|end| x(step.from + end));
        put!(
            picture,
            "<path class=\"whisker\" d=\"M{low:.1} 11H{high:.1}M{low:.1} 7V15M{high:.1} 7V15\"/>"
        );
    }
    if step.class == "whole" && !edges.is_whole {
        let at = edges.edge + STUB / 2.0;
        put!(
            picture,
            "<path class=\"break\" d=\"M{:.1} 20L{:.1} 2M{:.1} 20L{:.1} 2\"/>",
            at - 6.0,
            at,
            at,
            at + 6.0
        );
    }
    picture.push_str("</svg>");
    picture
}

/// Returns the bars of the findings in their order, then that of the remaining difference, unless it is at most half a
/// per cent of the whole.
fn steps(explained: &CellExplanation) -> Vec<Step> {
    let explanation = &explained.explanation;
    let mut at = 0.0;
    let mut all = Vec::new();
    let mut add = |name: String, effect: f64, interval: Option<[f64; 2]>, class| {
        all.push(Step {
            name,
            from: at,
            to: at + effect,
            interval,
            class,
        });
        at += effect;
    };
    for finding in &explanation.findings {
        let class = if finding.effect < 0.0 { "less" } else { "more" };
        add(
            finding.mechanism.to_string(),
            finding.effect,
            Some(finding.interval),
            class,
        );
    }
    // The remaining difference without evidence: the whole difference minus the findings.
    let rest =
        explanation.difference() - explanation.findings.iter().map(|f| f.effect).sum::<f64>();
    if rest.abs() > 0.005 * explanation.difference().abs() {
        add("other, and not sure in sign".to_owned(), rest, None, "rest");
    }
    all
}
