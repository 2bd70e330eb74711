//! Power analysis from the noise of a comparison: the smallest effect that a given number of seeds can detect, and the
//! number of seeds that a given effect needs.

use pagetide_verdict::StatError;
use pagetide_verdict::number::log_ratio;
use pagetide_verdict::power::{Campaign, Noise, detectable, pairs_needed};
use serde::Serialize;

use crate::comparison::Comparison;
use crate::judge::ALPHA;
use crate::pairs::pairs;

/// Maximum number of seeds that is tried.
pub const MAX_SEEDS: usize = 400;
/// Minimum number of pairs from which noise can be estimated.
const MIN_PAIRS: usize = 3;

/// Input of a power analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerQuestion {
    /// Number of seeds of each variant.
    pub seeds: usize,
    /// The effect to detect, as a ratio minus 1: 0.02 is 2 %.
    pub effect: f64,
    /// Required probability of detecting the effect, from 0 to 1.
    pub probability: f64,
    /// Number of primary metrics that share the error rate. `None` for the number in the comparison; without a
    /// comparison, for 1.
    pub primaries: Option<usize>,
}

/// Result of the power analysis for one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricPower {
    /// Label of the cell.
    pub cell: String,
    /// Name of the metric.
    pub metric: String,
    /// Name of the variant.
    pub variant: String,
    /// Number of pairs from which the noise was estimated.
    pub pairs_seen: usize,
    /// Smallest effect detected with the required probability, as a ratio minus 1; `None` if there is no such effect.
    pub detectable: Option<f64>,
    /// Number of seeds needed to detect the requested effect; `None` if it is more than [`MAX_SEEDS`].
    pub needed: Option<usize>,
    /// Why there is no result; empty if there is one.
    pub note: &'static str,
}

impl PowerQuestion {
    /// Returns the power for normally distributed noise. `relative` is the relative standard deviation between the two
    /// sides of a pair: 0.01 is 1 %.
    pub fn for_normal_noise(&self, relative: f64) -> Result<MetricPower, StatError> {
        let mut power = MetricPower {
            cell: format!("normal noise of {} %", relative * 100.0),
            metric: "any".to_owned(),
            variant: "any".to_owned(),
            pairs_seen: 0,
            detectable: None,
            needed: None,
            note: "",
        };
        let deviation = relative.ln_1p();
        self.answer(&mut power, Noise::Normal { deviation }, 1)?;
        Ok(power)
    }

    /// Returns the power for every primary metric and variant of a comparison.
    pub fn for_comparison(&self, comparison: &Comparison) -> Result<Vec<MetricPower>, StatError> {
        let primaries = comparison.deciding().count();
        let mut all = Vec::new();
        for cell in &comparison.cells {
            for metric in cell.metrics.iter().filter(|metric| metric.primary) {
                for (column, variant) in comparison.columns.iter().enumerate().skip(1) {
                    let pairs = pairs(cell, metric, column);
                    let mut power = MetricPower {
                        cell: cell.label.clone(),
                        metric: metric.name.clone(),
                        variant: variant.name.clone(),
                        pairs_seen: pairs.len(),
                        detectable: None,
                        needed: None,
                        note: "",
                    };
                    if pairs.len() < MIN_PAIRS {
                        power.note = "too few pairs";
                    } else if pairs.iter().any(|pair| pair.a <= 0.0 || pair.b <= 0.0) {
                        power.note = "values of zero have no ratio";
                    } else {
                        let differences: Vec<f64> =
                            pairs.iter().map(|pair| log_ratio(pair.a, pair.b)).collect();
                        let first = differences[0];
                        if differences.iter().all(|d| (d - first).abs() < 1e-15) {
                            power.note = "no noise: any effect is found";
                        } else {
                            self.answer(&mut power, Noise::Observed { differences }, primaries)?;
                        }
                    }
                    all.push(power);
                }
            }
        }
        Ok(all)
    }

    fn answer(
        &self,
        power: &mut MetricPower,
        noise: Noise,
        primaries: usize,
    ) -> Result<(), StatError> {
        let campaign = Campaign {
            pairs: self.seeds,
            alpha: ALPHA,
            primaries: self.primaries.unwrap_or(primaries).max(1),
            noise,
            seed: 1,
        };
        power.detectable = detectable(&campaign, self.probability)?.map(f64::exp_m1);
        power.needed = pairs_needed(&campaign, self.effect.ln_1p(), self.probability, MAX_SEEDS)?;
        Ok(())
    }
}
