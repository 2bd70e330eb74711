//! Measures how often an arena's noise causes a false verdict. The campaigns compare a variant with itself, so every
//! claimed difference is false.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::interval::Interval;
use crate::judge::judge;
use crate::judgement::{Effect, EffectKind, Judgement};
use crate::number::{log_ratio, mean, median, standard_deviation};
use crate::proportion::wilson;
use crate::sample::{Count, Data, Family, MetricSample, Pair};

/// Results of campaigns that compare one variant with itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Number of campaigns judged.
    pub campaigns: u64,
    /// Number of campaigns in which a primary metric differed significantly, even if by less than its margin.
    pub false_alarms: u64,
    /// Fraction of campaigns with a false alarm, with Wilson's 95 % interval; `None` without campaigns.
    pub false_alarm_rate: Option<Interval>,
    /// Error rate with which the campaigns were judged.
    pub alpha: f64,
    /// Noise of each metric, over all campaigns.
    pub metrics: Vec<MetricNoise>,
}

/// Noise of one metric between two runs of the same variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricNoise {
    /// Name of the metric.
    pub name: String,
    /// Unit of the metric, as a label.
    pub unit: String,
    /// Whether the numbers below are computed from log ratios or from differences in the metric's unit.
    pub kind: EffectKind,
    /// Number of pairs of runs, over all campaigns.
    pub pairs: u64,
    /// Number of pairs whose two records are bit-identical.
    pub identical: u64,
    /// Standard deviation of the effect over the pairs; `None` for one pair.
    pub deviation: Option<f64>,
    /// Standard deviation of the effect over the pairs, estimated as 1.4826 times the median absolute value. Single
    /// outliers do not affect it.
    pub robust_deviation: f64,
    /// Correlation of the effect of each pair with that of the next pair. A value far from zero means that a trial
    /// depends on the trials before it. `None` if nothing varies.
    pub autocorrelation: Option<f64>,
    /// Estimated effect of B against A with its interval, although both are the same variant. If the interval excludes
    /// "no effect", the order of the runs has an effect.
    pub bias: Option<Effect>,
    /// Number of campaigns in which this metric differed significantly, even if by less than its margin.
    pub false_claims: u64,
}

/// Judges campaigns that compare a variant with itself, and measures the noise of each metric of the first campaign.
pub fn calibrate(campaigns: &[Family]) -> Result<Calibration> {
    let judged: Vec<Vec<Judgement>> = campaigns.iter().map(judge).collect::<Result<_>>()?;
    let alarm = |judgements: &&Vec<Judgement>| {
        judgements
            .iter()
            .any(|judgement| judgement.primary && judgement.shift.is_some())
    };
    let false_alarms = judged.iter().filter(alarm).count() as u64;
    let false_alarm_rate = (!campaigns.is_empty())
        .then(|| {
            let count = Count {
                successes: false_alarms,
                attempts: campaigns.len() as u64,
            };
            wilson(count, 0.95)
        })
        .transpose()?;
    let first = campaigns.first().map_or(&[][..], |family| &family.metrics);
    let metrics = first
        .iter()
        .filter_map(|sample| noise(sample, campaigns, &judged).transpose())
        .collect::<Result<_>>()?;
    Ok(Calibration {
        campaigns: campaigns.len() as u64,
        false_alarms,
        false_alarm_rate,
        alpha: campaigns.first().map_or(0.05, |family| family.alpha),
        metrics,
    })
}

/// Splits one long run of pairs into campaigns of `pairs` pairs each, in the order of measurement. Drops the pairs that
/// do not fill a campaign, and all metrics whose data are not paired values.
pub fn split(long: &Family, pairs: usize) -> Vec<Family> {
    let pairs = pairs.max(1);
    let least = long.metrics.iter().filter_map(|sample| match &sample.data {
        Data::Paired { pairs } => Some(pairs.len()),
        _ => None,
    });
    let count = least.min().unwrap_or(0) / pairs;
    (0..count)
        .map(|campaign| Family {
            metrics: long
                .metrics
                .iter()
                .filter_map(|sample| match &sample.data {
                    Data::Paired { pairs: all } => Some(MetricSample {
                        data: Data::Paired {
                            pairs: all[campaign * pairs..(campaign + 1) * pairs].to_vec(),
                        },
                        ..sample.clone()
                    }),
                    _ => None,
                })
                .collect(),
            ..long.clone()
        })
        .collect()
}

/// Returns the noise of one metric over all campaigns; `None` for data that are not pairs of values.
fn noise(
    sample: &MetricSample,
    campaigns: &[Family],
    judged: &[Vec<Judgement>],
) -> Result<Option<MetricNoise>> {
    let same = |other: &&MetricSample| other.name == sample.name;
    let pairs: Vec<Pair> = campaigns
        .iter()
        .filter_map(|family| family.metrics.iter().find(same))
        .filter_map(|sample| match &sample.data {
            Data::Paired { pairs } => Some(pairs.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let whole = Family::new(
        0,
        vec![MetricSample {
            data: Data::Paired {
                pairs: pairs.clone(),
            },
            ..sample.clone()
        }],
    );
    let judgement = judge(&whole)?.remove(0);
    let Some(bias) = judgement.effect else {
        return Ok(None);
    };
    let differences: Vec<f64> = pairs
        .iter()
        .map(|pair| match bias.kind {
            EffectKind::Ratio => log_ratio(pair.a, pair.b),
            EffectKind::Difference => pair.b - pair.a,
        })
        .collect();
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let false_claims = judged
        .iter()
        .flatten()
        .filter(|judgement| judgement.name == sample.name && judgement.shift.is_some())
        .count();
    Ok(Some(MetricNoise {
        name: sample.name.clone(),
        unit: sample.unit.clone(),
        kind: bias.kind,
        pairs: pairs.len() as u64,
        identical: judgement.identical_pairs.unwrap_or(0),
        deviation: standard_deviation(&differences)?,
        robust_deviation: 1.4826 * median(&sizes)?,
        autocorrelation: autocorrelation(&differences)?,
        bias: Some(bias),
        false_claims: false_claims as u64,
    }))
}

/// Returns the correlation of each value with the next value, around the common mean; `None` if nothing varies.
fn autocorrelation(values: &[f64]) -> Result<Option<f64>> {
    let Some(deviation) = standard_deviation(values)?.filter(|deviation| *deviation > 0.0) else {
        return Ok(None);
    };
    let centre = mean(values)?;
    let scaled: Vec<f64> = values.iter().map(|x| (x - centre) / deviation).collect();
    let products: f64 = scaled.windows(2).map(|pair| pair[0] * pair[1]).sum();
    Ok(Some(products / scaled.iter().map(|x| x * x).sum::<f64>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Xoshiro;
    use crate::sample::Scale;
    use pagetide_quantity::Direction;

    fn family(pairs: Vec<Pair>) -> Family {
        Family::new(
            1,
            vec![MetricSample {
                name: "swap-in".into(),
                unit: "nanos".into(),
                direction: Direction::Lower,
                primary: true,
                margin: None,
                scale: Scale::Auto,
                data: Data::Paired { pairs },
            }],
        )
    }

    #[test]
    fn an_exact_arena_shows_no_noise_and_no_alarms() {
        let pair = |i: u32| Pair {
            a: f64::from(i),
            b: f64::from(i),
            identical: true,
        };
        let long = family((1..=40).map(pair).collect());
        let found = calibrate(&split(&long, 8)).unwrap();
        assert_eq!((found.campaigns, found.false_alarms), (5, 0));
        assert_eq!(found.metrics[0].identical, 40);
        assert!(found.metrics[0].robust_deviation.abs() < 1e-300);
        assert_eq!(found.metrics[0].autocorrelation, None);
    }

    #[test]
    fn noise_is_measured_as_it_was_made() {
        let mut random = Xoshiro::new(4);
        let mut draw = || 100.0 * (0.02 * random.normal()).exp();
        let pairs = (0..4_000).map(|_| Pair::new(draw(), draw())).collect();
        let found = calibrate(&split(&family(pairs), 10)).unwrap();
        let noise = &found.metrics[0];
        let expected = 0.02 * 2.0_f64.sqrt();
        assert!((noise.deviation.unwrap() / expected - 1.0).abs() < 0.05);
        assert!((noise.robust_deviation / expected - 1.0).abs() < 0.05);
        assert!(noise.autocorrelation.unwrap().abs() < 0.05);
        assert!(found.false_alarm_rate.unwrap().contains(0.048));
    }

    #[test]
    fn an_order_effect_shows_as_bias_and_as_false_alarms() {
        let mut random = Xoshiro::new(4);
        let mut draw = |slow: f64| slow * 100.0 * (0.01 * random.normal()).exp();
        let pairs = (0..80).map(|_| Pair::new(draw(1.0), draw(1.05))).collect();
        let found = calibrate(&split(&family(pairs), 8)).unwrap();
        assert!(found.false_alarms >= 8);
        let bias = found.metrics[0].bias.unwrap();
        assert!(!bias.interval.unwrap().contains(1.0));
    }
}
