//! Which effect so many seeds would find, and how many seeds an effect needs, from the noise of a comparison.

use pagetide_verdict::StatError;
use pagetide_verdict::number::log_ratio;
use pagetide_verdict::power::{Campaign, Noise, detectable, pairs_needed};
use serde::Serialize;

use crate::comparison::Comparison;
use crate::judge::ALPHA;
use crate::pairs::pairs;

/// Most seeds that are considered.
pub const MOST_SEEDS: usize = 400;
/// Fewest pairs that say something about noise.
const FEWEST_PAIRS: usize = 3;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerQuestion {
    /// Seeds of each variant.
    pub seeds: usize,
    /// Effect to be found, as a ratio less 1: 0.02 is 2 %.
    pub effect: f64,
    /// Probability with which it is to be found, from 0 to 1.
    pub probability: f64,
    /// Primary metrics that share the error rate; `None` for those of the comparison, or 1.
    pub primaries: Option<usize>,
}

/// The answer for one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricPower {
    /// Label of the cell.
    pub cell: String,
    /// Name of the metric.
    pub metric: String,
    /// Name of the variant.
    pub variant: String,
    /// Pairs from which the noise is known.
    pub pairs_seen: usize,
    /// Smallest effect found with the wanted probability, as a ratio less 1.
    pub detectable: Option<f64>,
    /// Seeds that the effect in question needs; `None` above [`MOST_SEEDS`].
    pub needed: Option<usize>,
    /// Why there is no answer; empty where there is one.
    pub note: &'static str,
}

impl PowerQuestion {
    /// The answer for normal noise with this relative deviation between the two sides of a pair: 0.01 is 1 %.
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

    /// The answer for every primary metric and variant of a comparison.
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
                    if pairs.len() < FEWEST_PAIRS {
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
        power.needed = pairs_needed(&campaign, self.effect.ln_1p(), self.probability, MOST_SEEDS)?;
        Ok(())
    }
}
