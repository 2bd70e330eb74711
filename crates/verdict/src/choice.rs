//! Which of several choices no other beats, where each has several costs by seed.
//!
//! A choice *beats* another if one of its costs is surely less and none is more than [`SAME`] above. Surely: the seeds' differences,
//! paired, have an interval of 95 % (Student's) below zero, and are at least [`SAME`] of the other's cost on average. Those that none
//! beats are the Pareto front.

use crate::number::mean;
use crate::student;

/// A difference that counts for nothing, as a share: 1 %.
pub const SAME: f64 = 0.01;

/// The costs of a choice: for each kind of cost, by seed, in one order for all choices; more is worse. Empty for a kind that was not
/// measured.
pub type Costs = Vec<Vec<f64>>;

/// Whether the first of two costs, by seed, is surely less than the second.
pub fn is_surely_less(a: &[f64], b: &[f64]) -> bool {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let (Ok(difference), Ok(whole)) = (mean(&differences), mean(b)) else {
        return false;
    };
    let is_clear = student::interval(&differences).is_ok_and(|interval| interval.high < 0.0);
    is_clear && -difference >= SAME * whole.abs()
}

/// Whether a choice beats another.
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

/// Of each choice, whether no other beats it.
pub fn front(choices: &[Costs]) -> Vec<bool> {
    choices
        .iter()
        .map(|choice| !choices.iter().any(|other| beats(other, choice)))
        .collect()
}
