//! Metrics that differ significantly between the timed trials. Only these differences are explained.

use pagetide_quantity::Unit;
use pagetide_verdict::Verdict;
use pagetide_verdict::judgement::{EffectKind, Summary};
use serde::Serialize;

use crate::comparison::{Cell, MetricRow};

/// A metric that differs significantly between the timed trials of two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Name of the metric.
    pub metric: String,
    /// Unit of the metric.
    pub unit: Unit,
    /// True if the metric is primary.
    pub primary: bool,
    /// The verdict on the metric: improved, regressed or changed.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Means over the timed trials, in the metric's unit: of the baseline and of the other side.
    pub means: [f64; 2],
    /// Medians over the timed trials, as in the table of verdicts: of the baseline and of the other side.
    pub medians: [f64; 2],
    /// Effect on the metric: B divided by A, or B minus A, depending on `kind`.
    pub effect: f64,
    /// Whether `effect` is a ratio or a difference.
    pub kind: EffectKind,
}

impl Claim {
    /// Returns the difference of the means, B minus A, in the metric's unit.
    pub fn difference(&self) -> f64 {
        self.means[1] - self.means[0]
    }
}

/// Returns the metrics of a cell that differ significantly between a column and the baseline, primary ones first.
pub fn claims(cell: &Cell, column: usize) -> Vec<Claim> {
    let of_row = |row: &MetricRow| {
        let judgement = row.judgements.get(column.checked_sub(1)?)?.as_ref()?;
        let effect = judgement.effect?;
        let of_sides = |part: fn(&Summary) -> f64| {
            [&judgement.a, &judgement.b].map(|side| side.as_ref().map_or(f64::NAN, part))
        };
        judgement.verdict.is_difference().then(|| Claim {
            metric: row.name.clone(),
            unit: row.unit,
            primary: row.primary,
            verdict: judgement.verdict.clone(),
            means: of_sides(|side| side.mean),
            medians: of_sides(|side| side.median),
            effect: effect.estimate,
            kind: effect.kind,
        })
    };
    cell.metrics.iter().filter_map(of_row).collect()
}

/// Minimum size of a claimed time, as a share of the time that is explained. Means and quantiles of short operations
/// are smaller.
const PART_SHARE: f64 = 0.1;
/// Suffix of the names of metrics for the longest of many times. The longest time is not a part of a sum.
const LONGEST: &str = "-max";

/// Returns the claim (a metric that differs significantly) that matches the difference in `time`, the times of both
/// sides in nanoseconds. It must be a time of at least [`PART_SHARE`] of `time` whose verdict is improved or regressed,
/// and not the longest of many times; it may change in the opposite direction. Primary metrics come first, then the
/// most similar absolute difference; `None` if no claim matches.
pub(super) fn explained(claims: &[Claim], time: [f64; 2]) -> Option<&Claim> {
    let distance = |claim: &Claim| {
        let [own, whole] = [claim.difference(), time[1] - time[0]].map(|d| d.abs().max(1.0).ln());
        (own - whole).abs()
    };
    claims
        .iter()
        .filter(|claim| claim.unit == Unit::Nanos && claim.verdict != Verdict::Changed)
        .filter(|claim| !claim.metric.ends_with(LONGEST))
        .filter(|claim| claim.means[0].max(claim.means[1]) >= PART_SHARE * time[0].max(time[1]))
        .min_by(|x, y| {
            (!x.primary, distance(x))
                .partial_cmp(&(!y.primary, distance(y)))
                .unwrap_or(std::cmp::Ordering::Equal)
        })
}
