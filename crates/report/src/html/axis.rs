//! The scales of an HTML page: the intervals of all ratios share one scale, and so do those of all differences in one
//! unit. Each tick stands exactly at the value that it names.

use pagetide_compare::{Comparison, MetricRow};
use pagetide_quantity::Unit;
use pagetide_verdict::judgement::{Effect, EffectKind};

use super::escape::text;
use crate::draw::quantity::{Scale, signed};
use crate::terminal::effect;

/// Possible right ends of the scale of ratios, as increases in per cent. The left end is the inverse ratio.
const REACHES: [f64; 12] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 900.0, 1900.0, 9900.0,
];
/// Possible ticks for increases, in per cent.
const PERCENTS: [f64; 15] = [
    9900.0, 1900.0, 900.0, 400.0, 200.0, 100.0, 50.0, 20.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1,
];
/// Possible ticks for decreases, in per cent: halving is as far from the centre as doubling.
const FALLS: [f64; 14] = [
    99.0, 95.0, 90.0, 80.0, 67.0, 50.0, 33.0, 20.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2,
];

/// A symmetric scale for effects, with an effect of zero in the centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    kind: EffectKind,
    unit: Unit,
    /// Value at the right edge: the natural logarithm of a ratio, or a difference in its unit. The left edge is the
    /// negative of it.
    reach: f64,
}

impl Axis {
    /// Returns the position of a value: 0 is the left edge, 1 the right edge; values outside the scale give positions
    /// outside this range.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let at = match self.kind {
            EffectKind::Ratio if value > 0.0 => value.ln(),
            EffectKind::Ratio => f64::NEG_INFINITY,
            EffectKind::Difference => value,
        };
        f64::midpoint(1.0, at / self.reach)
    }

    /// Returns the positions and names of ticks that are at least `room` apart (a share of the width); the tick at zero
    /// comes first.
    pub(crate) fn ticks(&self, room: f64) -> Vec<(f64, String)> {
        let mut all = vec![(0.5, "0".to_owned())];
        let wanted: Vec<(f64, String)> = match self.kind {
            EffectKind::Ratio => {
                let percent = |value: f64| {
                    let digits = usize::from(value.abs() < 1.0);
                    (
                        1.0 + value / 100.0,
                        format!("{} %", signed(value, digits, false)),
                    )
                };
                let rises = PERCENTS.into_iter().map(percent);
                rises
                    .chain(FALLS.into_iter().map(|fall| percent(-fall)))
                    .collect()
            }
            EffectKind::Difference => {
                let scale = Scale::of(self.unit, self.reach);
                [1.0, 0.5]
                    .into_iter()
                    .flat_map(|share| [share * self.reach, -share * self.reach])
                    .map(|value| {
                        let (number, unit) = if self.unit == Unit::Share {
                            (exact(value * 100.0), "pt")
                        } else {
                            (exact(value / scale.divisor), scale.unit)
                        };
                        (value, format!("{number} {unit}").trim_end().to_owned())
                    })
                    .collect()
            }
        };
        for (value, name) in wanted {
            let at = self.place(value);
            let is_inside = (-1e-9..=1.0 + 1e-9).contains(&at);
            if is_inside && all.iter().all(|(other, _)| (other - at).abs() >= room) {
                all.push((at, name));
            }
        }
        all
    }

    /// Returns the ticks as an SVG of this width, with `pad` left free on both sides.
    pub(crate) fn svg(&self, width: f64, pad: f64) -> String {
        let mut out = format!(
            "<svg class=\"axis\" viewBox=\"0 0 {width} 20\" width=\"{width}\" height=\"20\" aria-hidden=\"true\">"
        );
        for (at, name) in self.ticks(58.0 / width) {
            let x = pad + at * (width - 2.0 * pad);
            put!(
                out,
                "<path d=\"M{x:.1} 15V20\"/><text x=\"{x:.1}\" y=\"12\" text-anchor=\"middle\">{}</text>",
                text(&name, 40)
            );
        }
        out.push_str("</svg>");
        out
    }
}

/// Formats a number with its sign and just enough decimals to be exact, at most nine.
fn exact(value: f64) -> String {
    let near = |digits: &usize| {
        let step = 10_f64.powi(i32::try_from(*digits).unwrap_or(0));
        ((value * step).round() / step - value).abs() <= value.abs() * 1e-9
    };
    let digits = (0..9).find(near).unwrap_or(9);
    signed(value, digits, false)
}

/// The axes for all intervals on one HTML page: one for ratios, and one per unit for differences.
pub(crate) struct Scales {
    ratio: Axis,
    differences: Vec<Axis>,
}

impl Scales {
    /// Creates the scales. Each contains the intervals of all primary metrics of its kind, or of all metrics if primary
    /// metrics have none; the scale of ratios ends at a hundredfold.
    pub(crate) fn of(comparison: &Comparison) -> Self {
        let rows: Vec<&MetricRow> = comparison
            .cells
            .iter()
            .flat_map(|cell| &cell.metrics)
            .collect();
        let percent = (most(&rows, EffectKind::Ratio, None).exp() - 1.0) * 100.0;
        let reach = REACHES
            .into_iter()
            .find(|step| *step >= percent)
            .unwrap_or(REACHES[REACHES.len() - 1]);
        let mut units: Vec<Unit> = Vec::new();
        for row in &rows {
            if !units.contains(&row.unit) {
                units.push(row.unit);
            }
        }
        let difference = |unit: Unit| {
            let most = most(&rows, EffectKind::Difference, Some(unit));
            (most > 0.0).then(|| Axis {
                kind: EffectKind::Difference,
                unit,
                reach: round_up(most),
            })
        };
        Self {
            ratio: Axis {
                kind: EffectKind::Ratio,
                unit: Unit::Ratio,
                reach: (1.0 + reach / 100.0).ln(),
            },
            differences: units.into_iter().filter_map(difference).collect(),
        }
    }

    /// Returns the scale of ratios.
    pub(crate) const fn ratio(&self) -> &Axis {
        &self.ratio
    }

    /// Returns the scale for an effect on a metric of this unit; `None` if the page has none.
    pub(crate) fn for_effect(&self, effect: &Effect, unit: Unit) -> Option<&Axis> {
        match effect.kind {
            EffectKind::Ratio => Some(&self.ratio),
            EffectKind::Difference => self.differences.iter().find(|axis| axis.unit == unit),
        }
    }
}

/// Returns the distance from zero effect of the interval end that is farthest from it: a natural logarithm for ratios.
/// Only primary metrics count, unless they have no such interval. `unit` selects metrics of one unit.
fn most(rows: &[&MetricRow], kind: EffectKind, unit: Option<Unit>) -> f64 {
    let of = |is_primary: bool| {
        let counted = rows
            .iter()
            .copied()
            .filter(|row| (row.primary || !is_primary) && unit.is_none_or(|unit| unit == row.unit));
        effect::farthest(counted, kind)
    };
    match of(true) {
        0.0 => of(false),
        most => most,
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(percent: f64) -> Axis {
        Axis {
            kind: EffectKind::Ratio,
            unit: Unit::Ratio,
            reach: (1.0 + percent / 100.0_f64).ln(),
        }
    }

    #[test]
    fn ticks_lie_where_their_values_lie_and_keep_their_distance() {
        for percent in REACHES {
            let axis = ratio(percent);
            let ticks = axis.ticks(0.2);
            assert!(ticks.len() >= 3, "{percent}: {ticks:?}");
            for (at, name) in &ticks {
                let number = name.replace('−', "-").replace(',', "");
                let number: f64 = number.trim_end_matches(" %").parse().expect("a number");
                assert!(
                    (axis.place(1.0 + number / 100.0) - at).abs() < 1e-9,
                    "{name}"
                );
            }
            for (nth, (at, _)) in ticks.iter().enumerate() {
                for (other, _) in &ticks[nth + 1..] {
                    assert!((at - other).abs() >= 0.2);
                }
            }
        }
    }

    #[test]
    fn a_fall_by_a_third_lies_as_far_from_zero_as_a_rise_by_half() {
        let axis = ratio(50.0);
        assert!((axis.place(1.5) - 1.0).abs() < 1e-12);
        assert!(axis.place(1.0 / 1.5).abs() < 1e-12);
        assert!(axis.place(0.5) < 0.0, "−50 % is outside");
        assert!(axis.place(0.0) < 0.0);
    }

    #[test]
    fn ticks_of_differences_are_the_values_at_which_they_stand() {
        for most in [0.0004, 0.003, 0.017, 0.041, 0.077, 0.3, 0.9] {
            let axis = Axis {
                kind: EffectKind::Difference,
                unit: Unit::Share,
                reach: round_up(most),
            };
            for (at, name) in axis.ticks(0.2) {
                let number = name.replace('−', "-");
                let number: f64 = number.trim_end_matches(" pt").parse().expect("a number");
                assert!(
                    (axis.place(number / 100.0) - at).abs() < 1e-9,
                    "{name} at {at}"
                );
            }
        }
    }

    #[test]
    fn differences_have_a_round_scale_of_their_unit() {
        let axis = Axis {
            kind: EffectKind::Difference,
            unit: Unit::Share,
            reach: round_up(0.077),
        };
        let names: Vec<String> = axis.ticks(0.2).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["0", "+10 pt", "−10 pt", "+5 pt", "−5 pt"]);
    }
}
