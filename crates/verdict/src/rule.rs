//! Decision rules: thresholds for p-values and the confidence level of intervals for one look (interim analysis) at the
//! data.

use serde::Serialize;

use crate::error::Result;
use crate::number::probability;

/// Thresholds for one look (interim analysis). A campaign with a fixed number of trials has one look and Holm's
/// thresholds. A sequential plan has one rule for each look.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// Error rate of the whole family, over all looks.
    pub alpha: f64,
    /// Confidence level of intervals at this look (interim analysis).
    pub level: f64,
    /// Thresholds for a p-value: `thresholds[i]` applies if i + 1 hypotheses remain. If n hypotheses remain and n
    /// exceeds the length of the list, the threshold is the last one times the length, divided by n.
    thresholds: Vec<f64>,
}

impl Rule {
    /// Rule for a fixed number of trials, which has one look: Holm's procedure at `alpha`, intervals of level 1 −
    /// `alpha`. Fails if `alpha` is not in (0, 1).
    pub fn fixed(alpha: f64) -> Result<Self> {
        probability("the error rate", alpha)?;
        Ok(Self {
            alpha,
            level: 1.0 - alpha,
            thresholds: vec![alpha],
        })
    }

    /// Rule for one look (interim analysis) of a sequential plan. `thresholds[i]` applies if i + 1 hypotheses remain;
    /// the list must not be empty.
    pub(crate) fn look(alpha: f64, thresholds: Vec<f64>) -> Self {
        Self {
            alpha,
            // Level 1 would make intervals infinite. If this look may spend no part of the error rate, the interval is
            // as wide as the data.
            level: 1.0 - thresholds[0].max(1e-12),
            thresholds,
        }
    }

    /// Returns the largest p-value that rejects a hypothesis when `remaining` have not been rejected yet.
    pub fn threshold(&self, remaining: usize) -> f64 {
        let last = self.thresholds.len();
        match self.thresholds.get(remaining.max(1) - 1) {
            Some(threshold) => *threshold,
            None => self.thresholds[last - 1] * last as f64 / remaining as f64,
        }
    }

    /// Returns `p` scaled so that the result is at most `alpha` if and only if `p` is at most the threshold.
    pub(crate) fn rescale(&self, p: f64, remaining: usize) -> f64 {
        let threshold = self.threshold(remaining);
        if threshold > 0.0 {
            // Multiplying before dividing keeps a p-value that equals its threshold from being lost to rounding.
            (p * self.alpha / threshold).min(1.0)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_rule_is_holm() {
        let rule = Rule::fixed(0.05).unwrap();
        assert!((rule.threshold(1) - 0.05).abs() < 1e-15);
        assert!((rule.threshold(5) - 0.01).abs() < 1e-15);
        assert!((rule.rescale(0.01, 3) - 0.03).abs() < 1e-15);
    }

    #[test]
    fn an_error_rate_outside_zero_and_one_is_refused() {
        assert!(
            Rule::fixed(0.0).is_err()
                && Rule::fixed(1.0).is_err()
                && Rule::fixed(f64::NAN).is_err()
        );
    }
}
