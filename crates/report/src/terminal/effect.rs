//! Shows a judgement as text and signs: change, interval, verdict.

use pagetide_compare::MetricRow;
use pagetide_quantity::Unit;
use pagetide_verdict::judgement::{Effect, EffectKind, Note};
use pagetide_verdict::{Judgement, Verdict};

use crate::about;
use crate::draw::quantity::{Scale, estimate_within};
use crate::draw::{Cell, Ink, TextStyle};

/// Returns the style in which a verdict is printed.
pub const fn ink(verdict: &Verdict) -> Ink {
    match verdict {
        Verdict::Improved => Ink::Good,
        Verdict::Regressed => Ink::Bad,
        Verdict::Inconclusive { .. } | Verdict::Confounded { .. } => Ink::Unsure,
        Verdict::Invalid { .. } => Ink::Broken,
        Verdict::Identical | Verdict::Equivalent => Ink::Faint,
        Verdict::Changed => Ink::Plain,
    }
}

/// Returns the sign before the verdict, so that readers can scan a column without reading words and without colours.
const fn sign(verdict: &Verdict, ascii: bool) -> &'static str {
    match (verdict, ascii) {
        (Verdict::Identical, _) => "=",
        (Verdict::Improved, false) => "✓",
        (Verdict::Improved, true) => "+",
        (Verdict::Regressed, false) => "✗",
        (Verdict::Regressed, true) => "x",
        (Verdict::Changed, false) => "≠",
        (Verdict::Changed, true) => "/",
        (Verdict::Equivalent, false) => "≈",
        (Verdict::Equivalent, true) => "~",
        (Verdict::Confounded { .. }, _) => "#",
        (Verdict::Inconclusive { .. }, _) => "?",
        (Verdict::Invalid { .. }, _) => "!",
    }
}

/// Returns the sign and word of a verdict in its style.
pub fn verdict(verdict: &Verdict, text_style: &TextStyle) -> Cell {
    Cell::new(
        ink(verdict),
        format!("{} {verdict}", sign(verdict, text_style.ascii)),
    )
}

/// Returns only the sign of a verdict, in its style.
pub fn verdict_sign(verdict: &Verdict, text_style: &TextStyle) -> Cell {
    Cell::new(ink(verdict), sign(verdict, text_style.ascii))
}

/// Returns the meanings of the signs of these verdicts, without repetitions.
pub fn legend<'a>(verdicts: impl Iterator<Item = &'a Verdict>, text_style: &TextStyle) -> String {
    let mut seen: Vec<String> = Vec::new();
    for verdict in verdicts {
        let words = format!("{} {verdict}", sign(verdict, text_style.ascii));
        if !seen.contains(&words) {
            seen.push(words);
        }
    }
    seen.join(", ")
}

/// Format of an effect's numbers: all have the same unit, and at least the same number of decimals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectScale {
    factor: f64,
    offset: f64,
    digits: usize,
    unit: &'static str,
}

impl EffectScale {
    /// Creates the scale for an effect on a metric of this unit: per cent for ratios, percentage points for shares,
    /// otherwise the metric's unit.
    pub fn of(effect: &Effect, unit: Unit) -> Self {
        let numbers = [
            Some(effect.estimate),
            effect.interval.map(|interval| interval.low),
            effect.interval.map(|interval| interval.high),
        ];
        let largest = |offset: f64| {
            numbers
                .iter()
                .flatten()
                .map(|value| (value - offset).abs())
                .filter(|size| size.is_finite())
                .fold(0.0_f64, f64::max)
        };
        if effect.kind == EffectKind::Ratio {
            let percent = largest(1.0) * 100.0;
            return Self {
                factor: 100.0,
                offset: 1.0,
                digits: if percent >= 100.0 {
                    0
                } else if percent >= 1.0 {
                    1
                } else {
                    2
                },
                unit: "%",
            };
        }
        if unit == Unit::Share {
            return Self {
                factor: 100.0,
                offset: 0.0,
                digits: 1,
                unit: "pt",
            };
        }
        let scale = Scale::of_all(unit, numbers.into_iter().flatten());
        Self {
            factor: 1.0 / scale.divisor,
            offset: 0.0,
            digits: scale.digits,
            unit: if scale.unit == "pages" {
                ""
            } else {
                scale.unit
            },
        }
    }

    /// Formats a number of the effect without its unit.
    pub fn number(&self, value: f64, ascii: bool) -> String {
        let shown = (value - self.offset) * self.factor;
        let [text, ..] = estimate_within(shown, [shown; 2], self.digits, ascii);
        text
    }

    /// Returns the estimate and the ends of its interval without unit, rounded so that they do not contradict each
    /// other. Without an interval, the ends equal the estimate.
    pub fn numbers(&self, effect: &Effect, ascii: bool) -> [String; 3] {
        let shown = |value: f64| (value - self.offset) * self.factor;
        let ends = effect.interval.map_or([effect.estimate; 2], |interval| {
            [interval.low, interval.high]
        });
        estimate_within(shown(effect.estimate), ends.map(shown), self.digits, ascii)
    }

    /// Returns the unit of the printed numbers.
    pub fn unit(&self, ascii: bool) -> &'static str {
        if ascii && self.unit == "µs" {
            "us"
        } else {
            self.unit
        }
    }
}

/// Returns the effect of a judgement; `None` if the judgement has no finite effect or the verdict is invalid.
fn effect_of(judgement: &Judgement) -> Option<&Effect> {
    if matches!(judgement.verdict, Verdict::Invalid { .. }) {
        return None;
    }
    judgement
        .effect
        .as_ref()
        .filter(|effect| effect.estimate.is_finite())
}

/// Returns the change with its unit, such as `−10.3 %`; `0` for an identical verdict, empty if the verdict is invalid
/// or the judgement has no finite effect.
pub fn change(judgement: &Judgement, unit: Unit, ascii: bool) -> String {
    if judgement.verdict == Verdict::Identical {
        return "0".to_owned();
    }
    effect_of(judgement).map_or_else(String::new, |effect| {
        let scale = EffectScale::of(effect, unit);
        let [number, ..] = scale.numbers(effect, ascii);
        match scale.unit(ascii) {
            "" => number,
            text => format!("{number} {text}"),
        }
    })
}

/// Returns the interval without its unit, such as `[−11.2, −9.4]`; empty if the judgement has no interval or the
/// verdict is identical or invalid.
pub fn interval(judgement: &Judgement, unit: Unit, ascii: bool) -> String {
    if judgement.verdict == Verdict::Identical {
        return String::new();
    }
    let Some(effect) = effect_of(judgement).filter(|effect| effect.interval.is_some()) else {
        return String::new();
    };
    let [_, low, high] = EffectScale::of(effect, unit).numbers(effect, ascii);
    format!("[{low}, {high}]")
}

/// Returns text such as `all 6 seeds agree; 8 would decide`. `None` unless all seeds agree and the verdict is open only
/// because other metrics are judged together with this one.
pub fn agreement(judgement: &Judgement) -> Option<String> {
    judgement.notes.iter().find_map(|note| match note {
        Note::AllAgree { n, least } => Some(format!("all {n} seeds agree; {least} would decide")),
        _ => None,
    })
}

/// Returns a short reason why a verdict is inconclusive although all seeds agree or its interval excludes zero effect;
/// otherwise `None`.
pub fn doubt(judgement: &Judgement) -> Option<String> {
    let Verdict::Inconclusive { .. } = judgement.verdict else {
        return None;
    };
    if let Some(agreement) = agreement(judgement) {
        return Some(agreement);
    }
    let effect = effect_of(judgement)?;
    let interval = effect.interval?;
    let null = effect.kind.null();
    if interval.low <= null && interval.high >= null {
        return None;
    }
    let (p, adjusted) = (judgement.p?, judgement.p_adjusted?);
    if p < judgement.alpha && adjusted >= judgement.alpha {
        Some(format!(
            "alone p = {p:.3}, among all that decide {adjusted:.3}"
        ))
    } else if p >= judgement.alpha {
        Some(format!("one side of no effect, but p = {p:.3}"))
    } else {
        None
    }
}

/// Returns a note with the ratio of the printed medians, if that ratio contradicts the printed change; otherwise
/// `None`.
pub fn parting(row: &MetricRow, other: usize) -> Option<String> {
    let judgement = about::judgement(row, other)?;
    let effect = effect_of(judgement).filter(|effect| effect.kind == EffectKind::Ratio)?;
    let medians = about::medians(row);
    let (a, b) = (
        medians.get(about::BASELINE).copied().flatten()?,
        medians.get(other).copied().flatten()?,
    );
    if a <= 0.0 || b <= 0.0 || judgement.n_b.is_some() {
        return None;
    }
    let ratio = b / a;
    // A ratio inside the interval does not contradict it. Identical sides have no interval, but their medians are
    // equal. A single pair has no interval either; then only the opposite sign is a contradiction.
    let same_sign = ratio.ln() * effect.estimate.ln() >= 0.0;
    let within = match effect.interval {
        Some(interval) => (interval.low..=interval.high).contains(&ratio),
        None => effect.estimate.ln() != 0.0 || ratio.ln() == 0.0,
    };
    if within && same_sign {
        return None;
    }
    let scale = EffectScale::of(effect, row.unit);
    Some(format!(
        "the medians are {} {} apart; the change is that of pairs with the same seed",
        scale.number(ratio, false),
        scale.unit(false)
    ))
}

/// Renders the interval on an axis from `-reach` to `reach` (natural logarithms of the ratio) with zero in the middle.
/// An end outside the axis is drawn as an arrow. Empty if the effect is not a ratio, or if `room` is below 7 columns.
pub fn strip(judgement: &Judgement, reach: f64, room: usize, text_style: &TextStyle) -> Cell {
    let Some(effect) = effect_of(judgement)
        .filter(|effect| effect.kind == EffectKind::Ratio && effect.estimate > 0.0)
    else {
        return Cell::empty();
    };
    if room < 7 {
        return Cell::empty();
    }
    let (low, high) = effect
        .interval
        .map_or((effect.estimate, effect.estimate), |i| (i.low, i.high));
    let middle = (room / 2) as f64;
    let last = (room - 1) as f64;
    // Column of a ratio; a ratio outside the axis gets the column at the edge.
    let column = |ratio: f64| -> f64 {
        let at = if ratio > 0.0 {
            ratio.ln()
        } else {
            f64::NEG_INFINITY
        };
        (at / reach).mul_add(middle, middle).round()
    };
    let (from, to, exact) = (column(low), column(high), column(effect.estimate));
    let dot = exact.clamp(0.0, last);
    let mut out = String::new();
    for index in 0..room {
        let at = index as f64;
        let is = |other: f64| (at - other).abs() < 0.5;
        let beyond_left = is(0.0) && from < 0.0;
        let beyond_right = is(last) && to > last;
        out.push_str(if beyond_left && (to >= 0.0 || exact < 0.0) {
            text_style.or("◂", "<")
        } else if beyond_right && (from <= last || exact > last) {
            text_style.or("▸", ">")
        } else if is(dot) {
            text_style.or("●", "o")
        } else if from <= at && at <= to {
            text_style.or("━", "=")
        } else if is(middle) {
            text_style.or("┊", "|")
        } else {
            " "
        });
    }
    Cell::new(ink(&judgement.verdict), out)
}

/// Possible right ends of the axis, in per cent. The left end is the inverse ratio.
const REACHES: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0];

/// Returns the absolute value of the interval end (or estimate without an interval) that is farthest from zero effect,
/// over all effects of one kind in these rows: a natural logarithm of a ratio, or a difference in its unit. 0 if there
/// are no such effects.
pub fn farthest<'a>(rows: impl IntoIterator<Item = &'a MetricRow>, kind: EffectKind) -> f64 {
    rows.into_iter()
        .flat_map(|row| row.judgements.iter().flatten())
        .filter_map(effect_of)
        .filter(|effect| effect.kind == kind)
        .flat_map(|effect| {
            effect.interval.map_or([effect.estimate; 2], |interval| {
                [interval.low, interval.high]
            })
        })
        .map(|value| match kind {
            EffectKind::Ratio => value.ln().abs(),
            EffectKind::Difference => value.abs(),
        })
        .filter(|size| size.is_finite())
        .fold(0.0_f64, f64::max)
}

/// Returns the right end of the axis of a table's intervals in per cent: the smallest of [`REACHES`] with which the
/// axis contains the intervals of its primary metrics, or of all metrics if none is primary; the largest if there is
/// none.
pub fn reach(rows: &[&MetricRow]) -> f64 {
    let any = rows.iter().any(|row| row.primary);
    let counted = rows.iter().copied().filter(|row| row.primary || !any);
    let most = (farthest(counted, EffectKind::Ratio).exp() - 1.0) * 100.0;
    REACHES
        .into_iter()
        .find(|step| *step >= most)
        .unwrap_or(REACHES[REACHES.len() - 1])
}

#[cfg(test)]
mod tests {
    use pagetide_verdict::Interval;

    use super::*;

    #[test]
    fn an_interval_near_zero_is_not_printed_as_touching_zero() {
        let shown = |kind: EffectKind, unit: Unit, [low, high]: [f64; 2]| {
            let interval = Interval {
                low,
                high,
                level: 0.96,
                wanted: 0.95,
            };
            let effect = Effect {
                kind,
                estimate: f64::midpoint(low, high),
                interval: Some(interval),
            };
            let [_, low, high] = EffectScale::of(&effect, unit).numbers(&effect, true);
            format!("{low} {high}")
        };
        let points = |ends| shown(EffectKind::Difference, Unit::Share, ends);
        assert_eq!(points([0.000_21, 0.013]), "+0.02 +1.3");
        assert_eq!(points([-0.013, -0.000_04]), "-1.3 -0.004");
        // An end at zero effect is printed as zero.
        assert_eq!(points([0.0, 0.013]), "0.0 +1.3");
        assert_eq!(points([-0.000_21, 0.013]), "0.0 +1.3");
        let per_cent = |ends| shown(EffectKind::Ratio, Unit::Nanos, ends);
        assert_eq!(per_cent([1.000_3, 2.5]), "+0.03 +150");
        assert_eq!(per_cent([0.87, 0.999_9]), "-13.0 -0.01");
    }
}
