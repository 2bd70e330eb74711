//! Draws an interval: a line between its ends, the estimate, a thin line at zero, and the shaded margin. The
//! estimate is a diamond if the verdict is decided, otherwise a ring. An end outside the picture is drawn as an arrow.

use pagetide_quantity::Unit;
use pagetide_verdict::Judgement;

use super::axis::{Axis, Scales};
use super::escape::text;

/// Height of the picture without ticks, in pixels.
pub(crate) const HEIGHT: f64 = 22.0;
/// Space for half of a tick's text on both sides, in pixels.
pub(crate) const PAD: f64 = 22.0;

/// Returns the picture as SVG; empty if there is no effect to draw. A difference gets its own ticks, because the ticks
/// in the head of the table are for ratios.
pub(crate) fn svg(
    judgement: &Judgement,
    unit: Unit,
    scales: &Scales,
    width: f64,
    label: &str,
) -> String {
    let mut out = bare(judgement, unit, scales, width, label);
    let axis = judgement
        .effect
        .and_then(|effect| scales.for_effect(&effect, unit));
    if let Some(axis) = axis.filter(|axis| *axis != scales.ratio() && !out.is_empty()) {
        out.push_str(&axis.svg(width, PAD));
    }
    out
}

/// Returns the picture without ticks as SVG, with `label` as its text for screen readers; empty if there is no effect
/// to draw.
pub(crate) fn bare(
    judgement: &Judgement,
    unit: Unit,
    scales: &Scales,
    width: f64,
    label: &str,
) -> String {
    let Some((effect, axis)) = judgement
        .effect
        .filter(|effect| effect.estimate.is_finite())
        .and_then(|effect| Some((effect, scales.for_effect(&effect, unit)?)))
    else {
        return String::new();
    };
    let (low, high) = effect
        .interval
        .map_or((effect.estimate, effect.estimate), |i| (i.low, i.high));
    let mut out = format!(
        "<svg class=\"strip {0}\" viewBox=\"0 0 {width} {HEIGHT}\" width=\"{width}\" height=\"{HEIGHT}\" role=\"img\" \
         aria-label=\"{1}\">",
        judgement.verdict,
        text(label, 300),
    );
    let frame = Frame { axis, width };
    if let Some(margin) = &judgement.margin {
        frame.margin(margin.low, margin.high, &mut out);
    }
    frame.interval(low, high, &mut out);
    frame.estimate(effect.estimate, judgement.verdict.is_sure(), &mut out);
    out.push_str("</svg>");
    out
}

struct Frame<'a> {
    axis: &'a Axis,
    width: f64,
}

impl Frame<'_> {
    /// Returns the position of a value in pixels; it may lie outside the picture.
    fn x(&self, value: f64) -> f64 {
        let at = self.axis.place(value).clamp(-9.0, 10.0);
        PAD + at * (self.width - 2.0 * PAD)
    }

    /// Returns the edge of the picture that a position exceeds; `None` if the position lies inside the picture.
    fn beyond(&self, x: f64) -> Option<f64> {
        let (left, right) = (PAD - 0.5, self.width - PAD + 0.5);
        (x < left)
            .then_some(PAD)
            .or((x > right).then_some(self.width - PAD))
    }

    fn margin(&self, low: f64, high: f64, out: &mut String) {
        let inside = |value: f64| self.x(value).clamp(PAD, self.width - PAD);
        let (from, to) = (inside(low), inside(high));
        put!(
            out,
            "<rect class=\"margin\" x=\"{from:.1}\" y=\"0\" width=\"{:.1}\" height=\"{HEIGHT}\"/>",
            (to - from).max(0.0)
        );
    }

    fn interval(&self, low: f64, high: f64, out: &mut String) {
        let middle = HEIGHT / 2.0;
        let null = self.width / 2.0;
        let [from, to] = [low, high].map(|value| self.x(value).clamp(PAD, self.width - PAD));
        put!(
            out,
            "<path class=\"null\" d=\"M{null} 0V{HEIGHT}\"/><path class=\"interval\" d=\"M{from:.1} {middle}H{to:.1}\"/>"
        );
        let mut arrows = Vec::new();
        for value in [low, high] {
            let x = self.x(value);
            match self.beyond(x) {
                None => put!(out, "<path class=\"interval end\" d=\"M{x:.1} 6V16\"/>"),
                Some(edge) if arrows.contains(&edge) => {}
                Some(edge) => {
                    let (tip, back) = if edge > null {
                        (edge + 8.0, -8.0)
                    } else {
                        (edge - 8.0, 8.0)
                    };
                    put!(
                        out,
                        "<path class=\"arrow\" d=\"M{tip:.1} {middle}l{back} -5v10z\"/>"
                    );
                    arrows.push(edge);
                }
            }
        }
    }

    /// Draws the estimate if it lies inside the picture.
    fn estimate(&self, value: f64, is_sure: bool, out: &mut String) {
        let x = self.x(value);
        if self.beyond(x).is_some() {
            return;
        }
        let middle = HEIGHT / 2.0;
        if is_sure {
            put!(
                out,
                "<path class=\"dot\" d=\"M{:.1} {middle}l6 -6l6 6l-6 6z\"/>",
                x - 6.0
            );
        } else {
            put!(
                out,
                "<circle class=\"ring\" cx=\"{x:.1}\" cy=\"{middle}\" r=\"4.5\"/>"
            );
        }
    }
}
