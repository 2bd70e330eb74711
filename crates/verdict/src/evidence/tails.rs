//! Evidence from quantiles of the accesses of many trials.

use super::{AnalysisOptions, Evidence, choose_kind, effects, summary};
use crate::error::{Result, Side};
use crate::judgement::{EffectKind, Methods, Note};
use crate::outlier;
use crate::sample::{Bin, MetricSample, TailPair};
use crate::tail::{self, TailQuestion};

pub(crate) fn weigh_paired(
    sample: &MetricSample,
    quantile: f64,
    pairs: &[TailPair],
    look: AnalysisOptions,
) -> Result<Evidence> {
    let a: Vec<Vec<Bin>> = pairs.iter().map(|pair| pair.a.clone()).collect();
    let b: Vec<Vec<Bin>> = pairs.iter().map(|pair| pair.b.clone()).collect();
    let mut evidence = weigh(sample, quantile, &a, &b, true, look)?;
    let identical = pairs.iter().filter(|pair| pair.identical).count();
    evidence.identical_pairs = Some(identical as u64);
    Ok(evidence)
}

pub(crate) fn weigh_unpaired(
    sample: &MetricSample,
    quantile: f64,
    a: &[Vec<Bin>],
    b: &[Vec<Bin>],
    look: AnalysisOptions,
) -> Result<Evidence> {
    weigh(sample, quantile, a, b, false, look)
}

fn weigh(
    sample: &MetricSample,
    quantile: f64,
    a: &[Vec<Bin>],
    b: &[Vec<Bin>],
    paired: bool,
    look: AnalysisOptions,
) -> Result<Evidence> {
    // The quantile of each trial is used for descriptive statistics and outliers; the comparison pools the trials.
    let own = |trials: &[Vec<Bin>]| -> Result<Vec<f64>> {
        trials
            .iter()
            .map(|trial| tail::pooled_quantile(std::slice::from_ref(trial), quantile))
            .collect()
    };
    let (own_a, own_b) = (own(a)?, own(b)?);
    let smallest = |trials: &[Vec<Bin>]| -> Vec<f64> {
        let least = |bins: &Vec<Bin>| bins.iter().map(|bin| bin.value).fold(f64::MAX, f64::min);
        trials.iter().map(least).collect()
    };
    let (kind, note) = choose_kind(sample, &smallest(a), &smallest(b))?;
    let question = TailQuestion {
        quantile,
        paired,
        ratio: kind == EffectKind::Ratio,
        level: look.level,
        resamples: look.resamples,
        seed: look.seed,
    };
    let found = tail::compare(a, b, &question)?;
    let mut outliers = outlier::label(Side::A, &own_a)?;
    outliers.extend(outlier::label(Side::B, &own_b)?);
    let mut notes: Vec<Note> = note.into_iter().collect();
    if paired {
        let differences = effects(kind, &own_a, &own_b)?;
        outliers.extend(outlier::label(Side::Effect, &differences)?);
    }
    if found.beyond < 10.0 {
        notes.push(Note::ThinTail {
            beyond: found.beyond,
        });
    }
    Ok(Evidence {
        kind,
        estimate: found.effect,
        interval: found.interval,
        test: found.test,
        p_sign_flip: None,
        n: a.len() as u64,
        n_b: (!paired).then_some(b.len() as u64),
        identical_pairs: None,
        // Equal quantiles do not mean equal distributions, so a tail stays in the family.
        no_difference: false,
        a: summary(&own_a)?,
        b: summary(&own_b)?,
        outliers,
        components: None,
        methods: Methods {
            estimator: "quantile of all accesses pooled".into(),
            interval: if paired {
                "bootstrap over trials, by subsets of their pairs (Hartigan)"
            } else {
                "bootstrap over trials, by half-samples widened for few"
            }
            .into(),
            test: if found.test.exact {
                "swapping labels of whole trials, all patterns"
            } else {
                "swapping labels of whole trials, random patterns, +1"
            }
            .into(),
            adjustment: String::new(),
        },
        notes,
    })
}
