//! Evidence from pairs: Wilcoxon's signed-rank test with the Hodges-Lehmann estimate.

use super::{AnalysisOptions, Evidence, choose_kind, effects, summary, working};
use crate::error::{Result, Side};
use crate::judgement::{EffectKind, Methods, Note};
use crate::nested;
use crate::outlier;
use crate::sample::{MetricSample, Pair, UnitPair};
use crate::sign_flip;
use crate::signed_rank::{self, Zeros};
use crate::tie;

pub(crate) fn weigh(
    sample: &MetricSample,
    pairs: &[Pair],
    look: AnalysisOptions,
) -> Result<Evidence> {
    let a: Vec<f64> = pairs.iter().map(|pair| pair.a).collect();
    let b: Vec<f64> = pairs.iter().map(|pair| pair.b).collect();
    let (kind, note) = choose_kind(sample, &a, &b)?;
    let flags: Vec<bool> = pairs.iter().map(|pair| pair.identical).collect();
    let mut evidence = from_values(kind, &a, &b, &flags, look)?;
    evidence.notes.extend(note);
    Ok(evidence)
}

pub(crate) fn weigh_nested(
    sample: &MetricSample,
    units: &[UnitPair],
    look: AnalysisOptions,
) -> Result<Evidence> {
    // Units without repetitions are judged by their values: taking logarithms would lose ties.
    let single: Option<Vec<Pair>> = units.iter().map(single).collect();
    if let Some(pairs) = single {
        return weigh(sample, &pairs, look);
    }
    let all = |side: fn(&UnitPair) -> &Vec<f64>| units.iter().flat_map(side).copied().collect();
    let (every_a, every_b): (Vec<f64>, Vec<f64>) = (all(|unit| &unit.a), all(|unit| &unit.b));
    let (kind, note) = choose_kind(sample, &every_a, &every_b)?;
    let logs = |side: fn(&UnitPair) -> &Vec<f64>| -> Vec<Vec<f64>> {
        units.iter().map(|unit| working(kind, side(unit))).collect()
    };
    let (units_a, units_b) = (logs(|unit| &unit.a), logs(|unit| &unit.b));
    let (a, b) = (nested::aggregate(&units_a)?, nested::aggregate(&units_b)?);
    let flags: Vec<bool> = units.iter().map(|unit| unit.identical).collect();
    let mut evidence = from_values(EffectKind::Difference, &a, &b, &flags, look)?;
    evidence.kind = kind;
    evidence.a = summary(&shown(kind, &a))?;
    evidence.b = summary(&shown(kind, &b))?;
    evidence.components = nested::components(&units_a).ok();
    evidence.methods.estimator = format!(
        "{} of units, each the Hodges-Lehmann estimate of its repetitions",
        estimator(kind)
    );
    evidence.notes.extend(note);
    Ok(evidence)
}

/// Returns the pair of a unit without repetitions; `None` if the unit has repetitions.
fn single(unit: &UnitPair) -> Option<Pair> {
    let ([a], [b]) = (unit.a.as_slice(), unit.b.as_slice()) else {
        return None;
    };
    Some(Pair {
        a: *a,
        b: *b,
        identical: unit.identical,
    })
}

/// Converts values from the working scale to the displayed scale.
pub(super) fn shown(kind: EffectKind, values: &[f64]) -> Vec<f64> {
    match kind {
        EffectKind::Ratio => values.iter().map(|&value| libm::exp(value)).collect(),
        EffectKind::Difference => values.to_vec(),
    }
}

fn estimator(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::Ratio => "Hodges-Lehmann of paired log ratios",
        EffectKind::Difference => "Hodges-Lehmann of paired differences",
    }
}

/// Returns the evidence from pairs of one value of each variant.
pub(super) fn from_values(
    kind: EffectKind,
    a: &[f64],
    b: &[f64],
    identical: &[bool],
    look: AnalysisOptions,
) -> Result<Evidence> {
    let differences = effects(kind, a, b)?;
    let estimate = signed_rank::estimate(&differences, look.level)?;
    let places = tie::places(kind, a, b, &differences);
    let test = signed_rank::test(&places, Zeros::Pratt)?;
    let p_sign_flip = (look.resamples > 0)
        .then(|| sign_flip::test(&differences, look.resamples, look.seed))
        .transpose()?
        .map(|test| test.p);
    let mut notes = Vec::new();
    let mut identical_pairs = 0;
    for (index, (&flag, &difference)) in identical.iter().zip(&differences).enumerate() {
        if flag && difference == 0.0 {
            identical_pairs += 1;
        } else if flag {
            notes.push(Note::ContradictoryPair { index });
        }
    }
    let mut outliers = outlier::label(Side::A, a)?;
    outliers.extend(outlier::label(Side::B, b)?);
    outliers.extend(outlier::label(Side::Effect, &differences)?);
    Ok(Evidence {
        kind,
        estimate: estimate.value,
        interval: estimate.interval,
        test,
        p_sign_flip,
        n: differences.len() as u64,
        n_b: None,
        identical_pairs: Some(identical_pairs),
        no_difference: places.iter().all(|&place| place == 0.0),
        a: summary(a)?,
        b: summary(b)?,
        outliers,
        components: None,
        methods: Methods {
            estimator: estimator(kind).into(),
            interval: "order statistics of Walsh averages (Wilcoxon signed-rank)".into(),
            test: if test.exact {
                "Wilcoxon signed-rank, Pratt zeros, exact over all sign flips"
            } else {
                "Wilcoxon signed-rank, Pratt zeros, normal approximation"
            }
            .into(),
            adjustment: String::new(),
        },
        notes,
    })
}
