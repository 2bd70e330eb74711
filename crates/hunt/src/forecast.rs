//! Predicts which untried candidates are worth a trial, from the traits that they share with tried candidates.
//!
//! The forecast keeps, for each trait and each pair of traits, the number and the mean score of the tried candidates
//! that had it. Each trait or pair is valued by this mean score plus a bonus that decreases with the number (like an
//! upper confidence bound, Auer, Cesa-Bianchi and Fischer 2002). As long as all scores are low, untried pairs come
//! first. Later, pairs with high scores come first.

use std::collections::BTreeMap;

/// Weight of the bonus for traits and pairs that were tried rarely.
const CURIOSITY: f64 = 0.5;
/// Divisor: the forecast score of a candidate is the mean over the best quarter (rounded up) of its traits and pairs of
/// traits, plus the bonus of its rarest trait.
const BEST: usize = 4;

/// Mean score of the candidates that have a certain trait or pair of traits.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

/// Mean scores of traits and of pairs of traits.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    numbers: BTreeMap<String, u32>,
    means: BTreeMap<(u32, u32), Mean>,
}

impl Forecast {
    /// Adds the score of a candidate with these traits.
    pub fn learn(&mut self, traits: &[String], score: f64) {
        let mut numbers: Vec<u32> = Vec::with_capacity(traits.len());
        for own in traits {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            numbers.push(*self.numbers.entry(own.clone()).or_insert(next));
        }
        for pair in pairs(&numbers) {
            let mean = self.means.entry(pair).or_default();
            mean.sum += score;
            mean.count += 1;
        }
    }

    /// Returns the forecast score of a candidate with these traits, including the bonus for traits and pairs that were
    /// tried rarely.
    pub fn promise(&self, traits: &[String]) -> f64 {
        let unknown = u32::MAX;
        let number = |own| self.numbers.get(own).copied().unwrap_or(unknown);
        let numbers: Vec<u32> = traits.iter().map(number).collect();
        let mean = |pair| self.means.get(&pair).copied().unwrap_or_default();
        let of_pair = |pair| {
            let mean: Mean = mean(pair);
            mean.sum / f64::from(mean.count.max(1)) + bonus(mean.count)
        };
        let count = |number| mean((number, number)).count;
        let mut all: Vec<f64> = pairs(&numbers).into_iter().map(of_pair).collect();
        all.sort_unstable_by(|a, b| b.total_cmp(a));
        let best = all.len().div_ceil(BEST).max(1);
        let rarest = numbers.iter().map(|number| count(*number)).min();
        all.iter().take(best).sum::<f64>() / best as f64 + bonus(rarest.unwrap_or(0))
    }
}

/// Returns the bonus of a trait or pair that was tried this number of times.
fn bonus(count: u32) -> f64 {
    CURIOSITY / (1.0 + f64::from(count)).sqrt()
}

/// Returns all pairs of these numbers, including each number with itself.
fn pairs(numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut all = Vec::with_capacity(numbers.len() * (numbers.len() + 1) / 2);
    for (place, first) in numbers.iter().enumerate() {
        all.extend(
            numbers[place..]
                .iter()
                .map(|second| (*first.min(second), *first.max(second))),
        );
    }
    all
}
