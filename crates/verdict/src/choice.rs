//! Pareto front of several choices, each of which has several costs, measured for each seed.
//!
//! A choice *beats* another if at least one of its costs is surely less, and none of its mean costs is more than
//! [`SAME`] above the other's. A cost is surely less if the 95 % Student interval of the paired differences by seed
//! lies below zero, and the mean difference is at least [`SAME`] of the other's cost. Choices that no other beats form
//! the Pareto front.

use crate::number::mean;
use crate::student;

/// Differences below this fraction of a cost are ignored: 1 %.
pub const SAME: f64 = 0.01;

/// Costs of a choice: for each kind of cost, one value per seed, in the same order for all choices. Lower is better.
/// Empty for a kind that was not measured.
pub type Costs = Vec<Vec<f64>>;

/// True if cost `a` is surely less than cost `b`, each given by seed.
pub fn is_surely_less(a: &[f64], b: &[f64]) -> bool {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let (Ok(difference), Ok(whole)) = (mean(&differences), mean(b)) else {
        return false;
    };
    let is_clear = student::interval(&differences).is_ok_and(|interval| interval.high < 0.0);
    is_clear && -difference >= SAME * whole.abs()
}

/// True if choice `a` beats choice `b`. Kinds of cost that either of them lacks are ignored.
pub fn beats(a: &Costs, b: &Costs) -> bool {
    let kinds = || {
        a.iter()
            .zip(b)
            .filter(|(a, b)| !a.is_empty() && !b.is_empty())
    };
    let is_no_worse = |(a, b): (&Vec<f64>, &Vec<f64>)| match (mean(a), mean(b)) {
        (Ok(a), Ok(b)) => a <= b + SAME * b.abs(),
        _ => false,
    };
    kinds().all(is_no_worse) && kinds().any(|(a, b)| is_surely_less(a, b))
}

/// For each choice, true if no other beats it.
pub fn front(choices: &[Costs]) -> Vec<bool> {
    choices
        .iter()
        .map(|choice| !choices.iter().any(|other| beats(other, choice)))
        .collect()
}
