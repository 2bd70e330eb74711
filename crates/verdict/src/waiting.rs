//! Relates the fraction of time spent waiting to the slowdown, and compares two sides by seed.
//!
//! A run under memory pressure waits for a fraction of its time, and is slower than the run of the same seed with
//! enough memory. If only waiting makes the run slower, a time T becomes T / (1 − fraction). Slowdown and waiting are
//! taken as logarithms of such factors. The *rate* of a side and a seed is slowdown divided by waiting: 1 if waiting
//! explains the whole slowdown, more if pressure has other costs. The rates of two sides are compared:
//!
//! 1. At the sizes where all seeds ran, each seed has one rate on each side: the sum of slowdowns over the sum of
//!    waiting. The logarithms of the ratios of these rates get Student's interval ([`mod@crate::student`]), so an
//!    effect of a seed on both sides cancels.
//! 2. The two sides were measured at different sizes, and a rate may change with pressure. So the interval is widened
//!    by the largest deviation from the side's rate among sizes whose slowdown lies in the compared range. Differences
//!    that the shape of the curves can explain are not claimed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number::mean;
use crate::student;

/// Minimum of slowdown and of waiting, both as logarithms, for which their ratio is meaningful.
const MIN: f64 = 0.002;
/// A ratio of rates closer to 1 than this, in either direction, does not count as a difference: it may be rounding.
const DIFFERENT: f64 = 1.01;
/// Rates count as the same if the interval of their ratio lies between 1 / `SAME` and `SAME`.
pub const SAME: f64 = 1.1;

/// A run under pressure, compared with the run of the same seed with enough memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitingRun {
    /// Memory available to the run, in bytes.
    pub size: u64,
    /// Number of the seed; runs of both sides with the same number are compared.
    pub seed: u32,
    /// Fraction of the run's time spent waiting, 0 to 1.
    pub share: f64,
    /// Slowdown as a fraction: 0.05 is 5 % slower.
    pub slowdown: f64,
}

impl WaitingRun {
    /// Returns the logarithm of the factor by which waiting lengthens the run: ln(1 / (1 − fraction)).
    fn waited(&self) -> f64 {
        -libm::log1p(-self.share.clamp(0.0, 0.999_999))
    }

    fn slower(&self) -> f64 {
        libm::log1p(self.slowdown.max(-0.999_999))
    }
}

/// Ratio of the rates of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateRatio {
    /// Rate of the second side divided by the rate of the first side.
    pub ratio: f64,
    /// Confidence interval of the ratio. The intervals of all comparisons made together contain the true ratios with a
    /// probability of 95 %.
    pub interval: [f64; 2],
    /// Conclusion from the interval of the ratio.
    pub finding: RateConclusion,
}

/// Conclusion from the interval of a ratio of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateConclusion {
    /// The rates differ by more than rounding: the same fraction of waiting slows one side down more than the other.
    Differ,
    /// The interval shows that the rates are the same to within [`SAME`].
    Same,
    /// The interval allows neither conclusion.
    Open,
}

/// Why two sides cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Incomparable {
    /// There is no interval for a single seed.
    #[error("fewer than two seeds ran at the same sizes")]
    Seeds,
    /// At no size at which all seeds ran, waiting and slowdown are large enough for a rate.
    #[error("no size that ran with all seeds both waited and was slower")]
    NoPressure,
    /// At least one seed did not wait, or was not slower, under pressure.
    #[error("a seed was not slower where it waited")]
    NotSlower,
}

/// The runs of one side at one memory size.
struct Size {
    /// Waiting and slowdown of each seed, as logarithms.
    runs: BTreeMap<u32, (f64, f64)>,
}

impl Size {
    /// Returns the mean waiting and mean slowdown over the seeds, as logarithms.
    fn centre(&self) -> (f64, f64) {
        let of = |take: fn(&(f64, f64)) -> f64| {
            mean(&self.runs.values().map(take).collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        (of(|run| run.0), of(|run| run.1))
    }

    /// True if waiting and slowdown are large enough for a meaningful rate.
    fn tells(&self) -> bool {
        let (waited, slower) = self.centre();
        waited >= MIN && slower >= MIN
    }
}

/// The sizes of one side at which waiting and slowdown give a meaningful rate, and the largest number of seeds at any
/// size.
struct Rates {
    sizes: Vec<Size>,
    seeds: usize,
}

impl Rates {
    fn of(runs: &[WaitingRun]) -> Self {
        let mut by_size: BTreeMap<u64, Size> = BTreeMap::new();
        for run in runs {
            let size = by_size.entry(run.size).or_insert(Size {
                runs: BTreeMap::new(),
            });
            size.runs.insert(run.seed, (run.waited(), run.slower()));
        }
        let seeds = by_size.values().map(|size| size.runs.len()).max();
        Self {
            sizes: by_size.into_values().filter(Size::tells).collect(),
            seeds: seeds.unwrap_or(0),
        }
    }

    /// Returns the sizes at which all seeds ran.
    fn full(&self) -> impl Iterator<Item = &Size> {
        self.sizes
            .iter()
            .filter(|size| size.runs.len() == self.seeds)
    }

    /// Returns the logarithm of the rate of each seed, over the sizes at which all seeds ran.
    fn by_seed(&self) -> Result<BTreeMap<u32, f64>, Incomparable> {
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for (seed, (waited, slower)) in self.full().flat_map(|size| &size.runs) {
            let sum = sums.entry(*seed).or_default();
            *sum = (sum.0 + waited, sum.1 + slower);
        }
        let rate = |(seed, (waited, slower)): (u32, (f64, f64))| {
            let is_positive = waited > 0.0 && slower > 0.0;
            is_positive.then(|| (seed, libm::log(slower / waited)))
        };
        sums.into_iter()
            .map(|sum| rate(sum).ok_or(Incomparable::NotSlower))
            .collect()
    }

    /// Returns the smallest and largest slowdown, as logarithms, among the sizes at which all seeds ran.
    fn range(&self) -> Option<(f64, f64)> {
        let slower: Vec<f64> = self.full().map(|size| size.centre().1).collect();
        let least = slower.iter().copied().reduce(f64::min)?;
        Some((least, slower.iter().copied().fold(least, f64::max)))
    }

    /// Returns the largest absolute difference between the log rate at one size and the mean log rate of the seeds that
    /// ran there, among the sizes with a slowdown in `range`.
    fn departure(&self, rates: &BTreeMap<u32, f64>, range: (f64, f64)) -> f64 {
        let is_inside = |size: &&Size| (range.0..=range.1).contains(&size.centre().1);
        let of = |size: &Size| {
            let (waited, slower) = size.centre();
            let own: Vec<f64> = size
                .runs
                .keys()
                .filter_map(|seed| rates.get(seed).copied())
                .collect();
            mean(&own).map_or(0.0, |own| (libm::log(slower / waited) - own).abs())
        };
        self.sizes
            .iter()
            .filter(is_inside)
            .map(of)
            .fold(0.0, f64::max)
    }
}

/// Compares the rates of two sides. `comparisons` is the number of comparisons made together, which share the error
/// rate of 5 %.
///
/// # Errors
///
/// If the rates cannot be compared.
pub fn compare(
    a: &[WaitingRun],
    b: &[WaitingRun],
    comparisons: u32,
) -> Result<RateRatio, Incomparable> {
    let (a, b) = (Rates::of(a), Rates::of(b));
    if a.seeds.min(b.seeds) < 2 {
        return Err(Incomparable::Seeds);
    }
    let (Some(of_a), Some(of_b)) = (a.range(), b.range()) else {
        return Err(Incomparable::NoPressure);
    };
    let (rates_a, rates_b) = (a.by_seed()?, b.by_seed()?);
    let effects: Vec<f64> = rates_a
        .iter()
        .filter_map(|(seed, rate)| Some(rates_b.get(seed)? - rate))
        .collect();
    let level = 1.0 - 0.05 / f64::from(comparisons.max(1));
    let interval = student::interval_at(&effects, level).map_err(|_| Incomparable::Seeds)?;
    let range = (of_a.0.min(of_b.0), of_a.1.max(of_b.1));
    let shape = a.departure(&rates_a, range) + b.departure(&rates_b, range);
    let (low, high) = (interval.low - shape, interval.high + shape);
    let (same, different) = (libm::log(SAME), libm::log(DIFFERENT));
    let finding = if low > different || high < -different {
        RateConclusion::Differ
    } else if low >= -same && high <= same {
        RateConclusion::Same
    } else {
        RateConclusion::Open
    };
    Ok(RateRatio {
        ratio: libm::exp(mean(&effects).map_err(|_| Incomparable::Seeds)?),
        interval: [libm::exp(low), libm::exp(high)],
        finding,
    })
}
