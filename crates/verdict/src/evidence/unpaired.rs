//! Evidence from unpaired groups: the Mann-Whitney test with the Hodges-Lehmann shift. Values are in order of
//! measurement, so that serial correlation can be detected.

use super::paired::shown;
use super::{AnalysisOptions, Evidence, choose_kind, summary, working};
use crate::error::{Result, Side, StatError};
use crate::interval::Test;
use crate::judgement::{EffectKind, Methods, Note};
use crate::nested;
use crate::normal;
use crate::outlier;
use crate::rank_sum;
use crate::sample::MetricSample;
use crate::serial::{self, Dependence};
use crate::tie;

pub(crate) fn weigh(
    sample: &MetricSample,
    a: &[f64],
    b: &[f64],
    look: AnalysisOptions,
) -> Result<Evidence> {
    let (kind, note) = choose_kind(sample, a, b)?;
    // Rank the values themselves: large neighbouring values may have equal logarithms.
    let test = rank_sum::test(a, b)?;
    let mut evidence = from_working(kind, &working(kind, a), &working(kind, b), test, look)?;
    evidence.a = summary(a)?;
    evidence.b = summary(b)?;
    evidence.notes.extend(note);
    Ok(evidence)
}

pub(crate) fn weigh_nested(
    sample: &MetricSample,
    a: &[Vec<f64>],
    b: &[Vec<f64>],
    look: AnalysisOptions,
) -> Result<Evidence> {
    if let (Some(a), Some(b)) = (single(a), single(b)) {
        return weigh(sample, &a, &b, look);
    }
    let flat = |units: &[Vec<f64>]| -> Vec<f64> { units.iter().flatten().copied().collect() };
    let (kind, note) = choose_kind(sample, &flat(a), &flat(b))?;
    let logs = |units: &[Vec<f64>]| -> Vec<Vec<f64>> {
        units.iter().map(|unit| working(kind, unit)).collect()
    };
    let (units_a, units_b) = (logs(a), logs(b));
    let (a, b) = (nested::aggregate(&units_a)?, nested::aggregate(&units_b)?);
    let [places_a, places_b] = tie::common_places(&a, &b);
    let test = rank_sum::test(&places_a, &places_b)?;
    let mut evidence = from_working(kind, &a, &b, test, look)?;
    evidence.components = nested::components(&units_a).ok();
    evidence
        .methods
        .estimator
        .push_str(" of units, each the Hodges-Lehmann estimate of its repetitions");
    evidence.notes.extend(note);
    Ok(evidence)
}

/// Returns the value of each unit; `None` if any unit has repetitions.
fn single(units: &[Vec<f64>]) -> Option<Vec<f64>> {
    let one = |unit: &Vec<f64>| match unit.as_slice() {
        [value] => Some(*value),
        _ => None,
    };
    units.iter().map(one).collect()
}

/// Returns the evidence from two groups of values on the working scale. `test` is the rank test of these groups.
pub(super) fn from_working(
    kind: EffectKind,
    a: &[f64],
    b: &[f64],
    test: Test,
    look: AnalysisOptions,
) -> Result<Evidence> {
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
    let mut evidence = Evidence {
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
    };
    let dependence = serial::dependence(&[a, b], look.seed)?;
    if let Some(found) = dependence.filter(Dependence::is_seen) {
        allow_for(&mut evidence, found);
    }
    Ok(evidence)
}

/// Widens the interval and raises the p-value to account for serial correlation of the trials.
fn allow_for(evidence: &mut Evidence, found: Dependence) {
    let factor = found.inflation.sqrt();
    let centre = evidence.estimate;
    // If the ends are far apart, widening may overflow.
    let widen = |end: f64| (centre + factor * (end - centre)).clamp(f64::MIN, f64::MAX);
    evidence.interval = evidence.interval.map(|interval| interval.map(widen));
    // The p-value of a rank test cannot fall below that of complete separation and ignores the distance between the
    // groups. The widened interval contains the distance. So p is the error rate at which the end of the interval would
    // reach zero.
    let toward_zero = evidence
        .interval
        .filter(|found| found.level > 0.0)
        .map(|interval| {
            let end = if centre > 0.0 {
                interval.low
            } else {
                interval.high
            };
            let z = -normal::quantile(0.5 * (1.0 - interval.level));
            normal::two_sided(z * centre / (centre - end))
        });
    let p = evidence.test.p.max(toward_zero.unwrap_or(1.0));
    evidence.test = Test {
        p: if p.is_nan() { 1.0 } else { p },
        exact: false,
    };
    evidence.methods.interval += ", widened for dependence between trials";
    evidence.methods.test += ", p raised for dependence between trials";
    let fewest = evidence.n.min(evidence.n_b.unwrap_or(evidence.n)) as f64;
    evidence.notes.push(Note::Dependent {
        correlation: found.correlation,
        worth: (fewest / found.inflation).max(1.0),
    });
}
