//! Tests that printed effects never contradict their interval or their verdict.

use pagetide_compare::Comparison;
use pagetide_report::terminal::{Options, verdicts};
use pagetide_report::{TextStyle, ktap, mail, markdown};
use pagetide_verdict::judgement::{Effect, EffectKind};
use pagetide_verdict::{Interval, Verdict};

use crate::data::{self, Draw};

/// A random number between a billionth and ten thousand.
fn size(draw: &mut Draw) -> f64 {
    let decade = draw.below(13) as f64 - 9.0;
    10.0_f64.powf(decade) * (1.0 + 9.0 * (draw.spread() + 1.0) / 2.0)
}

/// A comparison of two variants whose judgements have random effects. If the verdict is sure, the effect has the
/// verdict's sign.
fn drawn(draw: &mut Draw) -> Comparison {
    let mut comparison = data::mglru();
    let rows = comparison
        .cells
        .iter_mut()
        .flat_map(|cell| &mut cell.metrics);
    for judgement in rows.flat_map(|row| &mut row.judgements).flatten() {
        let up = draw.below(2) == 0;
        let is_claim = draw.below(3) > 0;
        let ratio = draw.below(2) == 0;
        let mut ends = [size(draw), size(draw)];
        ends.sort_by(f64::total_cmp);
        let share = [0.0, 1e-9, 0.01, 0.5, 1.0][usize::try_from(draw.below(5)).unwrap()];
        let [mut low, mut high] = ends;
        let mut estimate = low + (high - low) * share;
        if !is_claim {
            low = -low;
        }
        if !up {
            // A ratio cannot be zero or negative.
            let least: fn(f64) -> f64 = |x| -x / (1.0 + x.abs());
            let least = if ratio { least } else { |x: f64| -x };
            (low, estimate, high) = (least(high), least(estimate), least(low));
        }
        let null = f64::from(u8::from(ratio));
        judgement.effect = Some(Effect {
            kind: if ratio {
                EffectKind::Ratio
            } else {
                EffectKind::Difference
            },
            estimate: null + estimate,
            interval: Some(Interval {
                low: null + low,
                high: null + high,
                level: 0.95,
                wanted: 0.95,
            }),
        });
        judgement.verdict = match (is_claim, up) {
            (false, _) => Verdict::Inconclusive { n_needed: None },
            (true, true) => Verdict::Regressed,
            (true, false) => Verdict::Improved,
        };
    }
    comparison
}

/// The printed numbers of each effect in a line, such as `1.5 % [0.2, 6,176]`: the last number before each bracket, and
/// both numbers in the bracket.
fn printed(line: &str) -> Vec<[f64; 3]> {
    let number = |text: &str| -> Option<f64> {
        let text = text.replace(',', "").replace('\u{2212}', "-");
        text.trim()
            .trim_start_matches('+')
            .trim_end_matches("pt")
            .parse()
            .ok()
    };
    let mut all = Vec::new();
    for (at, _) in line.match_indices('[') {
        let Some(length) = line[at..].find(']') else {
            continue;
        };
        let Some((low, high)) = line[at + 1..at + length].split_once(", ") else {
            continue;
        };
        let (Some(low), Some(high)) = (number(low), number(high)) else {
            continue;
        };
        // In a sentence, the confidence level precedes the bracket, and the change precedes the level.
        if line[..at].trim_end().ends_with("interval") {
            continue;
        }
        let before: Vec<&str> = line[..at]
            .split(|c: char| c.is_whitespace() || "%()|<>\"".contains(c))
            .collect();
        let estimate = before
            .iter()
            .rev()
            .filter(|word| !word.is_empty())
            .find_map(|word| number(word));
        all.extend(estimate.map(|estimate| [low, estimate, high]));
    }
    all
}

/// HTML of the page of a comparison.
fn page(comparison: &Comparison) -> String {
    let page = data::page(comparison);
    // Each picture of an interval has a label, which the verdict follows.
    let mut lines = Vec::new();
    for piece in page.split("aria-label=\"").skip(1) {
        let (label, rest) = piece.split_once('"').unwrap();
        let verdict = rest.split_once("<span class=\"badge ");
        let verdict = verdict.and_then(|(_, word)| word.split_once('"'));
        lines.push(format!("{label} {}", verdict.map_or("", |(word, _)| word)));
    }
    lines.join("\n")
}

#[test]
fn no_printed_estimate_leaves_its_printed_interval_or_contradicts_its_verdict() {
    let mut draw = Draw(7);
    let text_style = TextStyle::plain(200);
    for _ in 0..60 {
        let comparison = drawn(&mut draw);
        let about = data::about();
        let options = Options {
            all: true,
            pictures: false,
        };
        let mut texts = vec![
            verdicts(&comparison, &about, options, &text_style),
            mail::mail(&comparison, &about, true),
            mail::mail(&comparison, &about, false),
            markdown::markdown(&comparison, &about),
            ktap::ktap(&comparison, &about),
        ];
        texts.push(page(&comparison));
        for text in texts {
            let mut seen = 0;
            for line in text.lines() {
                for [low, estimate, high] in printed(line) {
                    seen += 1;
                    assert!(low <= estimate && estimate <= high, "{line}");
                    let is_claim = line.contains("improved") || line.contains("regressed");
                    if is_claim && !line.contains("inconclusive") {
                        assert!(low * high > 0.0 && estimate * low > 0.0, "{line}");
                    }
                }
            }
            assert!(seen > 0, "{text}");
        }
    }
}
