//! Decision rules of two other suites, written from their sources, for comparison with our rule.

use pagetide_verdict::normal;

/// A rule that returns true if a metric with these values of A and B differs.
pub type OtherRule = fn(&[f64], &[f64]) -> bool;

/// MMTests marks a row as significant (`bin/lib/MMTests/Compare.pm`, `cidiff` in `bin/lib/MMTests/Stat.pm`, revision
/// 638401e07e70) if the means are further apart than the sum of the half-widths of both 95 % intervals. Its half-width
/// is the normal quantile times the standard deviation *of the values*, not of their mean. So the required distance,
/// 3.92 standard deviations, does not shrink with more trials.
pub fn mmtests(a: &[f64], b: &[f64]) -> bool {
    let width = |values: &[f64]| normal::quantile(0.975) * deviation(values);
    (mean(a) - mean(b)).abs() > width(a) + width(b)
}

/// LKP-tests calls a metric changed if the minimum of one side is above the median of the other side, and the median of
/// the first side is above the maximum of the other (`lib/changed_stat.rb`, `change?` without the option `distance`,
/// revision bbbc29c495d9). From 32 values on, one value in 32 is first removed from each end (`sort_remove_margin`, at
/// most three).
pub fn lkp(a: &[f64], b: &[f64]) -> bool {
    let (a, b) = (trimmed(a), trimmed(b));
    let above = |high: &[f64], low: &[f64]| {
        high[0] > low[low.len() / 2] && high[high.len() / 2] > low[low.len() - 1]
    };
    above(&a, &b) || above(&b, &a)
}

/// The rule of [`lkp`], with the additional condition that the medians differ by more than 1 %, as the report of
/// LKP-tests requires for performance metrics (`lib/stats.rb`, `skip_small_change?`).
pub fn lkp_reported(a: &[f64], b: &[f64]) -> bool {
    let median = |values: &[f64]| {
        let sorted = trimmed(values);
        sorted[sorted.len() / 2]
    };
    let (x, y) = (median(a), median(b));
    lkp(a, b) && x.max(y) / x.min(y) > 1.01
}

fn trimmed(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let margin = (values.len() >> 5).min(3);
    sorted[margin..values.len() - margin].to_vec()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|x| (x - centre).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}
