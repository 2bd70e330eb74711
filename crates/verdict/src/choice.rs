//! Pareto front of several choices, each of which has several costs, measured for each seed.
//!
//! Choice A *beats* choice B if at least one cost of A is significantly less, and no mean cost of A is more than
//! [`SAME`] above that of B. A cost is significantly less if the 95 % Student interval of the paired differences by
//! seed lies below zero, and the mean difference is at least the fraction [`SAME`] of B's cost. Choices that no other
//! choice beats form the Pareto front.

use crate::number::mean;
use crate::student;

/// Differences below this fraction of a cost are ignored: 1 %.
pub const SAME: f64 = 0.01;

/// Costs of one choice: for each kind of cost, one value per seed. Lower is better. Kinds and seeds have the same order
/// in all choices. The list of a kind that was not measured is empty.
pub type Costs = Vec<Vec<f64>>;

/// True if cost `a` is significantly less than cost `b`, and by at least the fraction [`SAME`] of `b`. Both have one
/// value per seed.
pub fn is_surely_less(a: &[f64], b: &[f64]) -> bool {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let (Ok(difference), Ok(whole)) = (mean(&differences), mean(b)) else {
        return false;
    };
    let is_clear = student::interval(&differences).is_ok_and(|interval| interval.high < 0.0);
    is_clear && -difference >= SAME * whole.abs()
}

/// True if choice `a` beats choice `b`: at least one cost is significantly less, and none is larger by more than
/// [`SAME`]. Kinds of cost that were not measured for both are ignored.
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

/// For each choice, true if no other choice beats it.
pub fn front(choices: &[Costs]) -> Vec<bool> {
    choices
        .iter()
        .map(|choice| !choices.iter().any(|other| beats(other, choice)))
        .collect()
}
