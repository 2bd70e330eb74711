//! Change points in a series of results over kernels or dates: E-divisive, with significance by permutation.
//!
//! Matteson and James (2014), "A nonparametric approach for multiple change point analysis of multivariate data", with
//! exponent 1, as used for performance results by Daly et al. (2020), "The use of change point detection to identify
//! software performance regressions in a continuous integration system". As in the latter, the right part of a split
//! always reaches to the end of the segment (κ is the segment's end).

use serde::{Deserialize, Serialize};

use crate::error::{Result, Side};
use crate::number::{all_finite, median_of_sorted, probability, sorted};
use crate::rng::Xoshiro;

/// Parameters of a search for change points in a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// A split is accepted if its permutation p-value is at most this.
    pub alpha: f64,
    /// Minimum number of values on each side of a split; at least 2.
    pub least: usize,
    /// Number of random permutations for each test.
    pub permutations: u32,
    /// Random seed of the permutations.
    pub seed: u64,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            alpha: 0.05,
            least: 3,
            permutations: 999,
            seed: 0,
        }
    }
}

/// A position where the distribution of a series changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// Index of the first value after the change, from 0.
    pub at: usize,
    /// Scaled sample divergence between the two sides when the split was found.
    pub statistic: f64,
    /// Permutation p-value of the split, with the +1 correction.
    pub p: f64,
    /// Median of the values between the previous change point (or the start of the series) and this change point.
    pub before: f64,
    /// Median of the values between this change point and the next one (or the end of the series).
    pub after: f64,
}

/// The best position to split a series, significant or not.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    /// Index of the first value after the split.
    at: usize,
    /// Scaled sample divergence, Q in equation 6 of the paper.
    statistic: f64,
}

/// Returns all change points of a series, in order. Fails if a value is not finite or `alpha` is not a probability.
///
/// The series is split at the position with the largest divergence, then each part is split in the same way. The search
/// stops when random permutations within the parts often reach the divergence of the best remaining split.
pub fn change_points(values: &[f64], search: &Search) -> Result<Vec<ChangePoint>> {
    all_finite(Side::Effect, values)?;
    probability("the significance of a change point", search.alpha)?;
    let least = search.least.max(2);
    let mut random = Xoshiro::new(search.seed);
    // All parts use one scale, so that their divergences can be compared.
    let scale = Segment::new(values).scale;
    let mut parts = vec![(0, Segment::scaled(values, scale))];
    let mut best = vec![parts[0].1.best(least)];
    let mut found: Vec<(usize, f64, f64)> = Vec::new();
    loop {
        let strongest = best
            .iter()
            .enumerate()
            .filter_map(|(part, split)| Some((part, (*split)?)))
            .max_by(|(_, x), (_, y)| x.statistic.total_cmp(&y.statistic));
        let Some((part, split)) = strongest.filter(|(_, split)| split.statistic > 0.0) else {
            break;
        };
        // Statistics that are equal up to rounding count as reached, because a permutation adds the same numbers in
        // another order.
        let reached = split.statistic * (1.0 - 1e-9);
        let mut extreme = 0_u32;
        for done in 0..search.permutations {
            let chance = parts
                .iter_mut()
                .filter_map(|(_, segment)| segment.best_by_chance(least, &mut random))
                .fold(0.0, f64::max);
            extreme += u32::from(chance >= reached);
            // So many permutations reached the statistic that the result cannot be significant. The remaining
            // permutations cannot change that.
            let rest = f64::from(search.permutations) + 1.0;
            if f64::from(extreme + 1) / rest > search.alpha && done > 50 {
                break;
            }
        }
        let p = f64::from(extreme + 1) / f64::from(search.permutations + 1);
        if p > search.alpha {
            break;
        }
        let (start, segment) = parts[part].clone();
        let whole = segment.values();
        let (left, right) = whole.split_at(split.at);
        // For values near the largest float, the divergence itself may overflow.
        let statistic = (split.statistic * scale).min(f64::MAX);
        found.push((start + split.at, statistic, p));
        let mut halves = [
            (start, Segment::of_scaled(left.to_vec(), scale)),
            (start + split.at, Segment::of_scaled(right.to_vec(), scale)),
        ];
        let bests = halves.each_mut().map(|(_, half)| half.best(least));
        parts.splice(part..=part, halves);
        best.splice(part..=part, bests);
    }
    found.sort_by_key(|&(at, ..)| at);
    Ok(described(values, &found))
}

fn described(values: &[f64], found: &[(usize, f64, f64)]) -> Vec<ChangePoint> {
    let median = |from: usize, to: usize| median_of_sorted(&sorted(&values[from..to]));
    found
        .iter()
        .enumerate()
        .map(|(i, &(at, statistic, p))| ChangePoint {
            at,
            statistic,
            p,
            before: median(i.checked_sub(1).map_or(0, |i| found[i].0), at),
            after: median(at, found.get(i + 1).map_or(values.len(), |next| next.0)),
        })
        .collect()
}

/// A part of a series, prepared so that many permutations of it are cheap: a Fenwick tree over the ranks of its values
/// holds the sums of distances to all smaller and larger values.
#[derive(Clone)]
struct Segment {
    /// Values of the series, centred and scaled, so that sums neither overflow nor lose precision to a common offset.
    values: Vec<f64>,
    ranks: Vec<usize>,
    order: Vec<usize>,
    centre: f64,
    scale: f64,
    total: f64,
}

impl Segment {
    fn new(values: &[f64]) -> Self {
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| {
                (low.min(x), high.max(x))
            });
        let range = 0.5 * high - 0.5 * low;
        Self::scaled(values, if range > 0.0 { range } else { 1.0 })
    }

    fn scaled(values: &[f64], scale: f64) -> Self {
        Self::of_scaled(values.iter().map(|x| x / scale).collect(), scale)
    }

    fn of_scaled(mut values: Vec<f64>, scale: f64) -> Self {
        let ascending = sorted(&values);
        let centre = ascending.get(values.len() / 2).copied().unwrap_or(0.0);
        for value in &mut values {
            *value -= centre;
        }
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
        let mut ranks = vec![0; values.len()];
        for (rank, &index) in order.iter().enumerate() {
            ranks[index] = rank;
        }
        let mut segment = Self {
            order: (0..values.len()).collect(),
            values,
            ranks,
            centre,
            scale,
            total: 0.0,
        };
        segment.total = segment.inner_sums(false).last().copied().unwrap_or(0.0);
        segment
    }

    /// Returns the values of the segment before centring, still scaled.
    fn values(&self) -> Vec<f64> {
        self.values.iter().map(|x| x + self.centre).collect()
    }

    /// Returns the best split of the values in their original order; `None` if there are too few values.
    fn best(&mut self, least: usize) -> Option<Split> {
        self.order.sort_unstable();
        self.best_in_order(least)
    }

    /// Returns the largest divergence after a random permutation of the values; `None` if there are too few values.
    fn best_by_chance(&mut self, least: usize, random: &mut Xoshiro) -> Option<f64> {
        random.shuffle(&mut self.order);
        self.best_in_order(least).map(|split| split.statistic)
    }

    fn best_in_order(&self, least: usize) -> Option<Split> {
        let n = self.values.len();
        if n < 2 * least {
            return None;
        }
        let (left, right) = (self.inner_sums(false), self.inner_sums(true));
        let mut best: Option<Split> = None;
        for at in least..=n - least {
            let (inside_left, inside_right) = (left[at - 1], right[n - at - 1]);
            let between = (self.total - inside_left - inside_right).max(0.0);
            let statistic = divergence(at, n - at, between, inside_left, inside_right);
            if best.is_none_or(|best| statistic > best.statistic) {
                best = Some(Split { at, statistic });
            }
        }
        best
    }

    /// Returns the cumulative sums of the distances between the first 1, 2, … values; between the last 1, 2, … values
    /// if `from_end` is set.
    fn inner_sums(&self, from_end: bool) -> Vec<f64> {
        let n = self.values.len();
        let mut tree = Fenwick::new(n);
        let mut sum = 0.0;
        (0..n)
            .map(|step| {
                let index = self.order[if from_end { n - 1 - step } else { step }];
                let (value, rank) = (self.values[index], self.ranks[index]);
                let (count, smaller) = tree.below(rank);
                let larger = tree.sum - smaller;
                let larger_count = (step - count) as f64;
                sum += (value * count as f64 - smaller) + (larger - value * larger_count);
                tree.add(rank, value);
                sum
            })
            .collect()
    }
}

/// Equation 6 of Matteson and James (2014), from the sums of distances between and inside two segments.
fn divergence(n: usize, m: usize, between: f64, inside_n: f64, inside_m: f64) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let pairs = |size: f64| size * (size - 1.0) / 2.0;
    let energy = 2.0 * between / (n * m) - inside_n / pairs(n) - inside_m / pairs(m);
    n * m / (n + m) * energy
}

/// Counts and sums of the values added so far, indexed by rank (Fenwick 1994).
struct Fenwick {
    counts: Vec<usize>,
    sums: Vec<f64>,
    sum: f64,
}

impl Fenwick {
    fn new(size: usize) -> Self {
        Self {
            counts: vec![0; size + 1],
            sums: vec![0.0; size + 1],
            sum: 0.0,
        }
    }

    fn add(&mut self, rank: usize, value: f64) {
        let mut node = rank + 1;
        while node < self.counts.len() {
            self.counts[node] += 1;
            self.sums[node] += value;
            node += node & node.wrapping_neg();
        }
        self.sum += value;
    }

    /// Returns the count and sum of the added values with a rank below `rank`.
    fn below(&self, rank: usize) -> (usize, f64) {
        let (mut node, mut count, mut sum) = (rank, 0, 0.0);
        while node > 0 {
            count += self.counts[node];
            sum += self.sums[node];
            node -= node & node.wrapping_neg();
        }
        (count, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut random = Xoshiro::new(seed);
        levels
            .iter()
            .flat_map(|&(count, level)| (0..count).map(move |_| level).collect::<Vec<_>>())
            .map(|level| level + random.normal())
            .collect()
    }

    #[test]
    fn every_step_of_a_series_is_found_where_it_is() {
        let values = noisy(&[(25, 100.0), (20, 106.0), (30, 98.0)], 5);
        let found = change_points(&values, &Search::default()).unwrap();
        let places: Vec<usize> = found.iter().map(|point| point.at).collect();
        assert_eq!(places, [25, 45]);
        assert!((found[0].after - 106.0).abs() < 1.0 && (found[1].before - 106.0).abs() < 1.0);
    }

    #[test]
    fn noise_alone_has_change_points_in_one_series_of_twenty_at_most() {
        let search = Search {
            permutations: 199,
            ..Search::default()
        };
        let alarms = (0..400)
            .filter(|&seed| {
                let values = noisy(&[(40, 10.0)], seed);
                let search = Search { seed, ..search };
                !change_points(&values, &search).unwrap().is_empty()
            })
            .count();
        // In 400 series, 20 changes are expected; 33 is three standard deviations more.
        assert!(alarms <= 33, "{alarms}");
    }

    #[test]
    fn a_deterministic_series_with_one_step_splits_once() {
        let mut values = vec![7.0; 12];
        values.extend([7.5; 9]);
        let found = change_points(&values, &Search::default()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].at, 12);
    }

    #[test]
    fn the_best_split_is_where_the_definition_puts_it() {
        let text = include_str!("../tests/golden/scipy.json");
        let golden: serde_json::Value = serde_json::from_str(text).unwrap();
        let cases = golden["change_points"].as_array().unwrap();
        assert!(cases.len() >= 4);
        for case in cases {
            let values: Vec<f64> = serde_json::from_value(case["values"].clone()).unwrap();
            let least: usize = serde_json::from_value(case["least"].clone()).unwrap();
            let mut segment = Segment::new(&values);
            let split = segment.best(least).unwrap();
            assert_eq!(Some(split.at as u64), case["at"].as_u64(), "{case}");
            let (got, want) = (split.statistic * segment.scale, case["statistic"].as_f64());
            assert!((got / want.unwrap() - 1.0).abs() < 1e-9, "{got}: {case}");
        }
    }

    #[test]
    fn equal_or_few_values_have_no_change_points() {
        for values in [&[][..], &[1.0], &[1.0, 9.0, 1.0], &[3.0; 50]] {
            assert!(
                change_points(values, &Search::default())
                    .unwrap()
                    .is_empty()
            );
        }
    }

    #[test]
    fn scale_and_offset_do_not_move_change_points() {
        let values = noisy(&[(15, 0.0), (15, 4.0)], 8);
        let places = |values: &[f64]| {
            let found = change_points(values, &Search::default()).unwrap();
            found.iter().map(|point| point.at).collect::<Vec<_>>()
        };
        let huge: Vec<f64> = values.iter().map(|x| x * 1e307).collect();
        let tiny: Vec<f64> = values.iter().map(|x| x * 1e-300).collect();
        assert_eq!(places(&values), [15]);
        assert_eq!(places(&values), places(&huge));
        assert_eq!(places(&values), places(&tiny));
    }
}
