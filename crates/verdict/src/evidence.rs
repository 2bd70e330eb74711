//! Estimate, interval and p-value of one metric, not yet adjusted for the other metrics of its family. The working
//! scale has no effect at zero: log ratios or differences.

pub(crate) mod paired;
pub(crate) mod tails;
pub(crate) mod unpaired;

use crate::error::{Result, Side, StatError};
use crate::interval::{Interval, Test};
use crate::judgement::{EffectKind, Methods, Note, Summary};
use crate::nested::Components;
use crate::number::{all_finite, log_ratio, mean, median, not_empty, standard_deviation};
use crate::outlier::Outlier;
use crate::sample::{MetricSample, Scale};

/// How to analyse the data of one metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnalysisOptions {
    /// Confidence level of intervals, between 0 and 1.
    pub level: f64,
    /// Random seed for this metric.
    pub seed: u64,
    /// Number of random sign patterns or labellings in a permutation test, and of bootstrap resamples.
    pub resamples: u32,
}

/// Estimate, interval, p-value and descriptive statistics from the data of one metric.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub kind: EffectKind,
    /// Estimated effect: a log ratio or a difference.
    pub estimate: f64,
    /// Interval of the effect, on the same scale as `estimate`; `None` if there are too few values or resamples for an
    /// interval.
    pub interval: Option<Interval>,
    pub test: Test,
    pub p_sign_flip: Option<f64>,
    pub n: u64,
    pub n_b: Option<u64>,
    pub identical_pairs: Option<u64>,
    /// True if no pair differs, or if all values of unpaired data are equal. Such a metric can never be claimed to
    /// differ, so it does not count in the correction for multiple metrics (Tarone 1990).
    pub no_difference: bool,
    pub a: Summary,
    pub b: Summary,
    pub outliers: Vec<Outlier>,
    pub components: Option<Components>,
    pub methods: Methods,
    pub notes: Vec<Note>,
}

impl Evidence {
    /// True if the records of every pair are bit-identical.
    pub fn all_identical(&self) -> bool {
        self.identical_pairs == Some(self.n)
    }

    /// Converts an effect from the working scale to the displayed scale.
    pub fn shown(&self, effect: f64) -> f64 {
        match self.kind {
            EffectKind::Ratio => libm::exp(effect).clamp(f64::MIN_POSITIVE, f64::MAX),
            EffectKind::Difference => effect,
        }
    }

    /// Returns the smallest p-value that is possible with `n` pairs, or with `n` trials of each variant.
    pub fn smallest_p(&self, n: u64) -> f64 {
        if self.n_b.is_some() {
            crate::rank_sum::smallest_p(n, n)
        } else {
            crate::signed_rank::smallest_p(n)
        }
    }

    /// Returns the effective number of trials per variant: n for pairs, otherwise the harmonic mean of the sizes of the
    /// two groups.
    pub fn effective_n(&self) -> f64 {
        let n = self.n as f64;
        self.n_b.map_or(n, |m| 2.0 / (1.0 / n + 1.0 / m as f64))
    }
}

/// Chooses ratio or difference for these values. Fails if a variant has no value, if a value is not finite, or if a
/// ratio is required but a value is not positive.
fn choose_kind(sample: &MetricSample, a: &[f64], b: &[f64]) -> Result<(EffectKind, Option<Note>)> {
    not_empty("A", a)?;
    not_empty("B", b)?;
    all_finite(Side::A, a)?;
    all_finite(Side::B, b)?;
    let refused = [(Side::A, a), (Side::B, b)]
        .into_iter()
        .find_map(|(side, values)| {
            let index = values.iter().position(|&value| value <= 0.0)?;
            Some((side, index, values[index]))
        });
    match (sample.scale, refused) {
        (Scale::Difference, _) => Ok((EffectKind::Difference, None)),
        (Scale::Auto, _) if is_share(&sample.unit) => Ok((EffectKind::Difference, None)),
        (Scale::Auto, Some(_)) => Ok((EffectKind::Difference, Some(Note::NotPositive))),
        (Scale::Ratio, Some((side, index, value))) => {
            Err(StatError::NotPositive { side, index, value })
        }
        (Scale::Ratio | Scale::Auto, None) => Ok((EffectKind::Ratio, None)),
    }
}

/// True for a unit that is a proportion. Proportions are compared as differences: from 1 % to 2 % is one point, not a
/// doubling.
fn is_share(unit: &str) -> bool {
    matches!(unit, "share" | "percent" | "points")
}

/// Returns the log ratio or difference of each pair. Fails if a difference overflows.
fn effects(kind: EffectKind, a: &[f64], b: &[f64]) -> Result<Vec<f64>> {
    a.iter()
        .zip(b)
        .enumerate()
        .map(|(index, (&a, &b))| {
            let effect = match kind {
                EffectKind::Ratio => log_ratio(a, b),
                EffectKind::Difference => b - a,
            };
            if effect.is_finite() {
                Ok(effect)
            } else {
                Err(StatError::Overflow { index })
            }
        })
        .collect()
}

/// Returns the values on the working scale: logarithms for ratios, unchanged for differences.
fn working(kind: EffectKind, values: &[f64]) -> Vec<f64> {
    match kind {
        EffectKind::Ratio => values.iter().map(|&value| libm::log(value)).collect(),
        EffectKind::Difference => values.to_vec(),
    }
}

fn summary(values: &[f64]) -> Result<Summary> {
    Ok(Summary {
        n: values.len() as u64,
        mean: mean(values)?,
        deviation: standard_deviation(values)?.filter(|deviation| deviation.is_finite()),
        median: median(values)?,
        least: values.iter().copied().fold(f64::INFINITY, f64::min),
        most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}
