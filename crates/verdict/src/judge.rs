//! Turns the evidence of each metric into its verdict, with the family's error rate, margins and directions.

use crate::adjust::{benjamini_hochberg, step_down};
use crate::error::{Result, StatError};
use crate::evidence::{AnalysisOptions, Evidence};
use crate::interval::Interval;
use crate::judgement::{Effect, EffectKind, Judgement, Methods, Note, Shift, Verdict};
use crate::margin::{Margin, MarginUsed, default_for};
use crate::normal;
use crate::number::floor_u64;
use crate::rule::Rule;
use crate::sample::{Family, MetricSample};
use crate::weigh::weigh;
use pagetide_quantity::Direction;

/// Power for which `n_needed` of [`Verdict::Inconclusive`] is computed.
const POWER: f64 = 0.8;
/// Largest number of pairs, or trials of each variant, that is suggested.
const MAX: u64 = 10_000_000;

/// Judges every metric of a family sampled with a fixed number of trials, in the order of the family.
///
/// Fails only if the error rate is not in (0, 1). A metric that cannot be judged gets [`Verdict::Invalid`].
///
/// ```
/// use pagetide_quantity::Direction;
/// use pagetide_verdict::{Data, Family, MetricSample, judge};
///
/// let a = [10.1, 10.4, 9.8, 10.0, 10.2, 9.9, 10.3, 10.1];
/// let b = [9.1, 9.5, 8.7, 9.2, 9.1, 9.0, 9.2, 9.3];
/// let metric = MetricSample {
///     name: "swap-in".into(),
///     unit: "nanos".into(),
///     direction: Direction::Lower,
///     primary: true,
///     margin: None,
///     scale: Default::default(),
///     data: Data::paired(&a, &b),
/// };
/// let judgements = judge(&Family::new(1, vec![metric]))?;
/// assert_eq!(judgements[0].verdict.to_string(), "improved");
/// # Ok::<(), pagetide_verdict::StatError>(())
/// ```
pub fn judge(family: &Family) -> Result<Vec<Judgement>> {
    Ok(judge_by(family, &Rule::fixed(family.alpha)?))
}

/// Judges every metric of a family with the thresholds of one look (interim analysis) of a sequential plan.
pub fn judge_by(family: &Family, rule: &Rule) -> Vec<Judgement> {
    let evidence: Vec<Result<Evidence>> = family
        .metrics
        .iter()
        .zip(0_u64..)
        .map(|(sample, position)| {
            let look = AnalysisOptions {
                level: rule.level,
                // Each metric has its random stream, so that adding a metric does not change the results of the others.
                seed: family.seed.wrapping_add(position.wrapping_mul(0x9e37_79b9)),
                resamples: family.resamples,
            };
            weigh(sample, look)
        })
        .collect();
    let adjusted = adjust_all(family, &evidence, rule);
    let tested = |primary: bool| {
        let both = family.metrics.iter().zip(&evidence);
        both.filter(|(sample, evidence)| sample.primary == primary && is_tested(evidence))
            .count()
    };
    let (deciding, explaining) = (tested(true), tested(false));
    family
        .metrics
        .iter()
        .zip(evidence)
        .zip(adjusted)
        .map(|((sample, evidence), p_adjusted)| match evidence {
            Ok(evidence) => {
                let peers = if sample.primary { deciding } else { explaining }.max(1);
                decide(sample, evidence, p_adjusted, rule, peers)
            }
            Err(error) => invalid(sample, &error, rule),
        })
        .collect()
}

/// True if a metric counts in the correction for multiple metrics. A metric without any difference can never be claimed
/// to differ, so it is left out.
fn is_tested(evidence: &Result<Evidence>) -> bool {
    evidence
        .as_ref()
        .is_ok_and(|evidence| !evidence.no_difference && !evidence.all_identical())
}

/// p-values of all metrics, adjusted for multiple metrics: Holm's steps for primary metrics, Benjamini-Hochberg for the
/// other metrics.
fn adjust_all(family: &Family, evidence: &[Result<Evidence>], rule: &Rule) -> Vec<f64> {
    let mut adjusted = vec![1.0; evidence.len()];
    for primary in [true, false] {
        let chosen: Vec<(usize, f64)> = evidence
            .iter()
            .enumerate()
            .filter(|&(index, evidence)| {
                family.metrics[index].primary == primary && is_tested(evidence)
            })
            .filter_map(|(index, evidence)| Some((index, evidence.as_ref().ok()?.test.p)))
            .collect();
        let p: Vec<f64> = chosen.iter().map(|&(_, p)| p).collect();
        let result = if primary {
            step_down(&p, |p, remaining| rule.rescale(p, remaining))
        } else {
            let rescaled: Vec<f64> = p.iter().map(|&p| rule.rescale(p, 1)).collect();
            benjamini_hochberg(&rescaled)
        };
        for (&(index, _), p) in chosen.iter().zip(result) {
            adjusted[index] = p;
        }
    }
    adjusted
}

fn invalid(sample: &MetricSample, error: &StatError, rule: &Rule) -> Judgement {
    Judgement {
        name: sample.name.clone(),
        unit: sample.unit.clone(),
        direction: sample.direction,
        primary: sample.primary,
        verdict: Verdict::Invalid {
            reason: error.to_string(),
        },
        shift: None,
        effect: None,
        p: None,
        p_adjusted: None,
        p_sign_flip: None,
        alpha: rule.alpha,
        n: 0,
        n_b: None,
        identical_pairs: None,
        a: None,
        b: None,
        outliers: Vec::new(),
        margin: None,
        components: None,
        methods: Methods::default(),
        notes: Vec::new(),
    }
}

fn decide(
    sample: &MetricSample,
    mut evidence: Evidence,
    p_adjusted: f64,
    rule: &Rule,
    peers: usize,
) -> Judgement {
    let remaining = if sample.primary { peers } else { 1 };
    let bounds = bounds(sample, &evidence);
    let excludes_zero = evidence
        .interval
        .is_some_and(|interval| !interval.contains(0.0));
    let shift = (p_adjusted <= rule.alpha * (1.0 + 1e-12) && excludes_zero).then_some(
        if evidence.estimate > 0.0 {
            Shift::Up
        } else {
            Shift::Down
        },
    );
    let equivalent = evidence
        .interval
        .is_some_and(|interval| interval.is_attained() && bounds.enclose(interval));
    let agreeing = agreeing(&evidence, p_adjusted, rule, peers).filter(|_| excludes_zero);
    let verdict = if evidence.all_identical() {
        Verdict::Identical
    } else if equivalent {
        Verdict::Equivalent
    } else if let Some(shift) = shift {
        claim(sample.direction, shift)
    } else {
        Verdict::Inconclusive {
            n_needed: needed(&evidence, bounds, rule, remaining)
                .map(|n| n.max(agreeing.unwrap_or(0))),
        }
    };
    if verdict == Verdict::Equivalent && shift.is_some() {
        evidence.notes.push(Note::SmallButReal);
    }
    let groups = evidence.n_b.map_or(evidence.n, |n_b| n_b.min(evidence.n));
    let least = fewest(&evidence, rule.threshold(remaining));
    if groups < least && matches!(verdict, Verdict::Inconclusive { .. }) {
        evidence.notes.push(Note::TooFew { least });
    } else if let (Some(least), Verdict::Inconclusive { .. }) = (agreeing, &verdict) {
        let n = evidence.n;
        evidence.notes.push(Note::AllAgree { n, least });
    }
    let adjustment = match (sample.primary, is_one_look(rule)) {
        (true, true) => "Holm",
        (true, false) => "Holm with the thresholds of this look",
        (false, true) => "Benjamini-Hochberg",
        (false, false) => "Benjamini-Hochberg with the threshold of this look",
    };
    let margin = shown_margin(sample, &evidence, bounds);
    Judgement {
        name: sample.name.clone(),
        unit: sample.unit.clone(),
        direction: sample.direction,
        primary: sample.primary,
        verdict,
        shift,
        effect: Some(Effect {
            kind: evidence.kind,
            estimate: evidence.shown(evidence.estimate),
            interval: evidence
                .interval
                .map(|interval| interval.map(|end| evidence.shown(end))),
        }),
        p: Some(evidence.test.p),
        p_adjusted: Some(p_adjusted),
        p_sign_flip: evidence.p_sign_flip,
        alpha: rule.alpha,
        n: evidence.n,
        n_b: evidence.n_b,
        identical_pairs: evidence.identical_pairs,
        a: Some(evidence.a),
        b: Some(evidence.b),
        outliers: evidence.outliers,
        margin: Some(margin),
        components: evidence.components,
        methods: Methods {
            adjustment: adjustment.into(),
            ..evidence.methods
        },
        notes: evidence.notes,
    }
}

fn is_one_look(rule: &Rule) -> bool {
    (rule.threshold(1) - rule.alpha).abs() < 1e-12
}

fn claim(direction: Direction, shift: Shift) -> Verdict {
    match (direction, shift) {
        (Direction::Neutral, _) => Verdict::Changed,
        (Direction::Lower, Shift::Down) | (Direction::Higher, Shift::Up) => Verdict::Improved,
        (Direction::Lower, Shift::Up) | (Direction::Higher, Shift::Down) => Verdict::Regressed,
    }
}

/// Bounds within which an effect counts as equivalent, on the working scale.
#[derive(Clone, Copy)]
struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// True if the interval lies within the bounds. The bounds are widened slightly, so that rounding does not move an
    /// effect of exactly the margin outside.
    fn enclose(self, interval: Interval) -> bool {
        let slack = 1e-12 * self.high.abs();
        interval.is_inside(self.low - slack, self.high + slack)
    }
}

fn margin_of(sample: &MetricSample) -> (Margin, Option<String>) {
    if let Some(margin) = sample.margin {
        return (margin, None);
    }
    let default = default_for(&sample.name, &sample.unit);
    (default.margin, Some(default.reason.to_owned()))
}

fn bounds(sample: &MetricSample, evidence: &Evidence) -> Bounds {
    let (margin, _) = margin_of(sample);
    // A margin is converted to the other scale at A's median.
    let centre = evidence.a.median.abs();
    let size = margin.size().max(0.0);
    let high = match (evidence.kind, margin) {
        (EffectKind::Ratio, Margin::Relative(_)) => libm::log1p(size),
        (EffectKind::Ratio, Margin::Absolute(_)) => libm::log1p(size / centre),
        (EffectKind::Difference, Margin::Relative(_)) => size * centre,
        (EffectKind::Difference, Margin::Absolute(_)) => size,
    };
    Bounds { low: -high, high }
}

fn shown_margin(sample: &MetricSample, evidence: &Evidence, bounds: Bounds) -> MarginUsed {
    let (margin, reason) = margin_of(sample);
    MarginUsed {
        margin,
        low: evidence.shown(bounds.low),
        high: evidence.shown(bounds.high),
        reason,
    }
}

/// Returns the minimum number of pairs, or of trials of each variant, for which a p-value of at most `threshold` is
/// possible; at most 4,000.
fn fewest(evidence: &Evidence, threshold: f64) -> u64 {
    (1..=4_000)
        .find(|&n| evidence.smallest_p(n) <= threshold * (1.0 + 1e-12))
        .unwrap_or(4_000)
}

/// Returns the number of pairs that would be enough for a claim if all of them agree in direction and the p-values of
/// the other metrics do not change. `None` if more than 4,000 are needed. `None` unless all measured pairs agree in
/// direction and only the adjustment for the other of `peers` metrics prevents a claim.
fn agreeing(evidence: &Evidence, p_adjusted: f64, rule: &Rule, peers: usize) -> Option<u64> {
    let slack = 1.0 + 1e-9;
    let p = evidence.test.p;
    let alone = rule.rescale(p, 1);
    let is_clearest = evidence.n_b.is_none() && p <= evidence.smallest_p(evidence.n) * slack;
    let limit = rule.alpha * slack;
    if !is_clearest || evidence.no_difference || alone > limit || p_adjusted <= limit {
        return None;
    }
    // If an adjusted p-value was cut to 1, the factor is not known. It is at most the number of metrics judged
    // together.
    let factor = if p_adjusted < 1.0 {
        p_adjusted / alone
    } else {
        peers as f64
    };
    (evidence.n + 1..=4_000).find(|&n| rule.rescale(evidence.smallest_p(n), 1) * factor <= limit)
}

/// Returns the number of pairs, or trials of each variant, that would probably give a verdict if the true effect is the
/// estimate: with so many, the interval excludes zero or lies inside the margin. `None` if more than [`MAX`] are
/// needed, or if the estimate is zero and the margin too. Without an interval, returns the smallest number with which a
/// claim is possible.
///
/// The width of an interval shrinks with the square root of n. Because the estimate is itself noisy, the interval must
/// clear its bound by z(80 %) standard errors (as in Julious 2004, sections 3 and 5, with the width in place of a known
/// variance).
fn needed(evidence: &Evidence, bounds: Bounds, rule: &Rule, remaining: usize) -> Option<u64> {
    let threshold = rule.threshold(remaining);
    let floor = fewest(evidence, threshold).max(evidence.n + 1);
    let Some(interval) = evidence.interval.filter(|interval| interval.level > 0.0) else {
        return Some(floor);
    };
    let z = |error: f64| -normal::quantile(error / 2.0);
    let spread = interval.half_width() * evidence.effective_n().sqrt() / z(1.0 - interval.level);
    let power = normal::quantile(POWER);
    let size = evidence.estimate.abs();
    let count = |target: f64, error: f64| {
        (target > 0.0).then(|| ((z(error) + power) * spread / target).powi(2).ceil())
    };
    let to_detect = count(size, threshold);
    let to_enclose = count(bounds.high - size, 1.0 - rule.level);
    let wanted = match (to_detect, to_enclose) {
        (Some(x), Some(y)) => x.min(y),
        (x, y) => x.or(y)?,
    };
    let wanted = floor_u64(wanted).max(floor);
    (wanted <= MAX).then_some(wanted)
}
