//! Groups that belong to nothing common: the Mann-Whitney test with the Hodges-Lehmann shift.

use super::paired::shown;
use super::{Evidence, Look, choose_kind, summary, working};
use crate::error::{Result, Side, StatError};
use crate::judgement::{EffectKind, Methods};
use crate::nested;
use crate::outlier;
use crate::rank_sum;
use crate::sample::MetricSample;

pub(super) fn weigh(sample: &MetricSample, a: &[f64], b: &[f64], look: Look) -> Result<Evidence> {
    let (kind, note) = choose_kind(sample, a, b)?;
    let mut evidence = from_working(kind, &working(kind, a), &working(kind, b), look)?;
    evidence.a = summary(a)?;
    evidence.b = summary(b)?;
    evidence.notes.extend(note);
    Ok(evidence)
}

pub(super) fn weigh_nested(
    sample: &MetricSample,
    a: &[Vec<f64>],
    b: &[Vec<f64>],
    look: Look,
) -> Result<Evidence> {
    let flat = |units: &[Vec<f64>]| -> Vec<f64> { units.iter().flatten().copied().collect() };
    let (kind, note) = choose_kind(sample, &flat(a), &flat(b))?;
    let logs = |units: &[Vec<f64>]| -> Vec<Vec<f64>> {
        units.iter().map(|unit| working(kind, unit)).collect()
    };
    let (units_a, units_b) = (logs(a), logs(b));
    let mut evidence = from_working(
        kind,
        &nested::aggregate(&units_a)?,
        &nested::aggregate(&units_b)?,
        look,
    )?;
    evidence.components = nested::components(&units_a).ok();
    evidence
        .methods
        .estimator
        .push_str(" of units, each the Hodges-Lehmann estimate of its repetitions");
    evidence.notes.extend(note);
    Ok(evidence)
}

/// Evidence from two groups on the working scale.
pub(super) fn from_working(kind: EffectKind, a: &[f64], b: &[f64], look: Look) -> Result<Evidence> {
    let test = rank_sum::test(a, b)?;
    let estimate = rank_sum::estimate(a, b, look.level)?;
    let finite = |value: f64| {
        if value.is_finite() {
            Ok(value)
        } else {
            Err(StatError::Overflow { index: 0 })
        }
    };
    if let Some(interval) = estimate.interval {
        finite(interval.low)?;
        finite(interval.high)?;
    }
    let mut outliers = outlier::label(Side::A, a)?;
    outliers.extend(outlier::label(Side::B, b)?);
    Ok(Evidence {
        kind,
        estimate: finite(estimate.value)?,
        interval: estimate.interval,
        test,
        p_sign_flip: None,
        n: a.len() as u64,
        n_b: Some(b.len() as u64),
        identical_pairs: None,
        no_difference: a.iter().chain(b).all(|x| x.total_cmp(&a[0]).is_eq()),
        a: summary(&shown(kind, a))?,
        b: summary(&shown(kind, b))?,
        outliers,
        components: None,
        methods: Methods {
            estimator: match kind {
                EffectKind::Ratio => "Hodges-Lehmann shift of logarithms",
                EffectKind::Difference => "Hodges-Lehmann shift",
            }
            .into(),
            interval: "order statistics of differences (Mann-Whitney)".into(),
            test: if test.exact {
                "Mann-Whitney U, exact over all labellings"
            } else {
                "Mann-Whitney U, normal approximation"
            }
            .into(),
            adjustment: String::new(),
        },
        notes: Vec::new(),
    })
}
