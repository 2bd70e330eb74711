//! Power: the effect that a number of pairs can detect. Campaigns are simulated and judged with the real test, because
//! formulas for the normal distribution do not cover ties, outliers or as few as six pairs.

use serde::{Deserialize, Serialize};

use crate::error::{Result, Side};
use crate::number::{all_finite, not_empty, probability};
use crate::rng::Xoshiro;
use crate::signed_rank::{self, Zeros, pseudo_median};

/// Distribution of paired log ratios (or differences) around the effect.
///
/// In the exact arena two runs of the same variant are equal; what varies is the effect from seed to seed. So take
/// `Observed` from a comparison of two variants, not of a variant with itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "noise")]
pub enum Noise {
    /// The effect is normally distributed.
    Normal {
        /// Standard deviation of a pair's log ratio or difference.
        deviation: f64,
    },
    /// The effect is drawn from these log ratios or differences, centred, with random signs.
    Observed {
        /// Observed log ratio or difference of each pair.
        differences: Vec<f64>,
    },
}

/// A campaign whose power is computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Number of pairs in the campaign.
    pub pairs: usize,
    /// Error rate of the family.
    pub alpha: f64,
    /// Number of primary metrics that share the error rate. The strictest threshold of Holm's procedure is assumed.
    pub primaries: usize,
    /// Distribution of the effect of a pair.
    pub noise: Noise,
    /// Random seed of the simulation.
    pub seed: u64,
}

/// Number of simulated campaigns. With this number the standard error of the power is about one percentage point.
const CAMPAIGNS: usize = 2_000;

/// Returns the probability that `effect` (a log ratio or a difference) is detected with the right sign.
pub fn power(campaign: &Campaign, effect: f64) -> Result<f64> {
    all_finite(Side::Effect, &[effect])?;
    Simulation::new(campaign)?.power(effect)
}

/// Returns the smallest effect (a log ratio or a difference, above zero) that is detected with probability `wanted`.
/// `None` if there are too few pairs to detect any effect, however large.
pub fn detectable(campaign: &Campaign, wanted: f64) -> Result<Option<f64>> {
    probability("the power", wanted)?;
    Simulation::new(campaign)?.detectable(wanted)
}

/// Returns the minimum number of pairs, up to `most`, that detect `effect` with probability `wanted`; `None` if `most`
/// pairs are too few.
pub fn pairs_needed(
    campaign: &Campaign,
    effect: f64,
    wanted: f64,
    most: usize,
) -> Result<Option<usize>> {
    probability("the power", wanted)?;
    let enough = |pairs: usize| -> Result<bool> {
        let campaign = Campaign {
            pairs,
            ..campaign.clone()
        };
        Ok(power(&campaign, effect)? >= wanted)
    };
    // Doubling, then bisection: power grows with n, except for the steps of exact tests.
    let mut above = 1;
    while !enough(above)? {
        if above >= most {
            return Ok(None);
        }
        above = (above * 2).min(most);
    }
    let mut below = above / 2;
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if enough(middle)? {
            above = middle;
        } else {
            below = middle;
        }
    }
    Ok(Some(above))
}

/// Random noise that is drawn once and then used with any effect. So the results for two effects differ only because of
/// the effects.
struct Simulation {
    campaigns: Vec<Vec<f64>>,
    threshold: f64,
    largest: f64,
}

impl Simulation {
    fn new(campaign: &Campaign) -> Result<Self> {
        probability("the error rate", campaign.alpha)?;
        let mut random = Xoshiro::new(campaign.seed);
        let mut draw: Box<dyn FnMut() -> f64> = match &campaign.noise {
            Noise::Normal { deviation } => {
                all_finite(Side::Effect, &[*deviation])?;
                let deviation = deviation.abs();
                Box::new(move || deviation * random.normal())
            }
            Noise::Observed { differences } => {
                not_empty("the noise of a pair", differences)?;
                all_finite(Side::Effect, differences)?;
                let centre = pseudo_median(differences)?;
                let centred: Vec<f64> = differences.iter().map(|d| d - centre).collect();
                Box::new(move || {
                    let size = centred[random.below(centred.len())];
                    if random.bits() >> 63 == 1 {
                        size
                    } else {
                        -size
                    }
                })
            }
        };
        let campaigns: Vec<Vec<f64>> = (0..CAMPAIGNS)
            .map(|_| (0..campaign.pairs.max(1)).map(|_| draw()).collect())
            .collect();
        let largest = campaigns
            .iter()
            .flatten()
            .fold(0.0, |most: f64, d| most.max(d.abs()));
        Ok(Self {
            campaigns,
            threshold: campaign.alpha / campaign.primaries.max(1) as f64,
            largest,
        })
    }

    fn power(&self, effect: f64) -> Result<f64> {
        let mut found = 0_usize;
        for noise in &self.campaigns {
            let differences: Vec<f64> = noise.iter().map(|d| d + effect).collect();
            let test = signed_rank::test(&differences, Zeros::Pratt)?;
            if test.p <= self.threshold * (1.0 + 1e-12) {
                let up = signed_rank::leaning(&differences) > 0.0;
                found += usize::from(up == (effect > 0.0));
            }
        }
        Ok(found as f64 / self.campaigns.len() as f64)
    }

    fn detectable(&self, wanted: f64) -> Result<Option<f64>> {
        // With an effect larger than all noise every pair has the same sign, so no larger effect is easier to detect.
        let mut high = if self.largest > 0.0 {
            2.0 * self.largest
        } else {
            f64::MIN_POSITIVE
        };
        if self.power(high)? < wanted {
            return Ok(None);
        }
        let mut low = 0.0;
        // Twenty halvings give two digits more than are displayed.
        for _ in 0..20 {
            let middle = 0.5 * (low + high);
            if self.power(middle)? >= wanted {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(Some(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(pairs: usize, deviation: f64) -> Campaign {
        Campaign {
            pairs,
            alpha: 0.05,
            primaries: 1,
            noise: Noise::Normal { deviation },
            seed: 1,
        }
    }

    #[test]
    fn power_is_near_that_of_the_t_test_for_normal_noise() {
        // Paired t-test, d = 0.5, n = 34: power 0.808 (Cohen 1988). The rank test needs about 5 % more pairs.
        let found = power(&campaign(34, 1.0), 0.5).unwrap();
        assert!((0.75..0.83).contains(&found), "{found}");
    }

    #[test]
    fn without_an_effect_the_power_is_the_error_rate_or_less() {
        let found = power(&campaign(12, 1.0), 1e-12).unwrap();
        // An effect counts as found only if its sign is right.
        assert!(found < 0.04, "{found}");
    }

    #[test]
    fn the_detectable_effect_shrinks_with_more_pairs_and_is_found_as_promised() {
        let few = detectable(&campaign(8, 0.03), 0.8).unwrap().unwrap();
        let many = detectable(&campaign(32, 0.03), 0.8).unwrap().unwrap();
        assert!(many < 0.6 * few, "{many} {few}");
        let check = Campaign {
            seed: 99,
            ..campaign(32, 0.03)
        };
        assert!((power(&check, many).unwrap() - 0.8).abs() < 0.04);
    }

    #[test]
    fn five_pairs_detect_nothing() {
        assert_eq!(detectable(&campaign(5, 0.03), 0.8).unwrap(), None);
    }

    #[test]
    fn without_noise_anything_is_detected() {
        assert!(detectable(&campaign(6, 0.0), 0.8).unwrap().unwrap() < 1e-300);
    }

    #[test]
    fn the_pairs_needed_find_the_effect_and_one_less_does_not() {
        let noise = Noise::Observed {
            differences: vec![0.01, -0.02, 0.015, 0.03, -0.01, 0.0, 0.005, -0.025],
        };
        let ask = Campaign {
            noise,
            ..campaign(0, 0.0)
        };
        let n = pairs_needed(&ask, 0.02, 0.8, 500).unwrap().unwrap();
        assert!((6..40).contains(&n), "{n}");
        assert_eq!(pairs_needed(&ask, 1e-6, 0.8, 50).unwrap(), None);
    }
}
