//! What a share of time spent waiting means for a whole time, compared between two sides by seed.
//!
//! A run under pressure waited for a share of its time and was slower than the same seed with plenty. If nothing but waiting made it slower,
//! a time T became T / (1 − share). So both are taken as logarithms, and of a side and a seed the *rate* is how much slower for how much
//! waiting: 1 where waiting explains all, more where pressure costs beside. Rates of two sides are compared:
//!
//! 1. At the sizes with all seeds a seed has one rate on each side, the sum of slowdowns over the sum of waiting. The logarithms of
//!    their ratios get Student's interval ([`mod@crate::student`]), so what a seed does to both sides cancels.
//! 2. Both sides were measured at other sizes, and a rate may change with pressure. So the interval is widened by how far any size with a
//!    slowdown between those that are compared departs from its side's rate. What the shape of the curves can make is not claimed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number::mean;
use crate::student;

/// The least slowdown and the least waiting, in logarithms, of a size that says something of their ratio.
const LEAST: f64 = 0.002;
/// The least ratio of rates, or one through it, that is a difference: what lies below may be rounding.
const DIFFERENT: f64 = 1.01;
/// Rates whose ratio surely is at most this, or one through this, are called the same.
pub const SAME: f64 = 1.1;

/// A run under pressure beside the run of the same seed with plenty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitingRun {
    /// How much it had.
    pub size: u64,
    /// Its seed.
    pub seed: u32,
    /// Share of its time for which it waited.
    pub share: f64,
    /// How much slower it was, as a share.
    pub slowdown: f64,
}

impl WaitingRun {
    /// Waiting, as the logarithm of what it makes of a time.
    fn waited(&self) -> f64 {
        -libm::log1p(-self.share.clamp(0.0, 0.999_999))
    }

    fn slower(&self) -> f64 {
        libm::log1p(self.slowdown.max(-0.999_999))
    }
}

/// How the rates of two sides compare.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateRatio {
    /// Rate of the second side for one of the first.
    pub ratio: f64,
    /// Its interval, at 95 % for all comparisons that are made together.
    pub interval: [f64; 2],
    /// What follows.
    pub finding: Finding,
}

/// What follows from an interval of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The same waiting surely means another slowdown.
    Differ,
    /// It surely means the same, as near as [`SAME`].
    Same,
    /// Neither is sure.
    Open,
}

/// Why two sides cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Incomparable {
    /// No interval comes of one seed.
    #[error("fewer than two seeds ran at the same sizes")]
    Seeds,
    /// Nothing under pressure came to an end with all seeds.
    #[error("no size that ran with all seeds both waited and was slower")]
    NoPressure,
    /// A seed was not slower.
    #[error("a seed was not slower where it waited")]
    NotSlower,
}

/// A size of one side.
struct Size {
    /// Waiting and slowdown by seed, in logarithms.
    runs: BTreeMap<u32, (f64, f64)>,
}

impl Size {
    /// Means of waiting and slowdown.
    fn centre(&self) -> (f64, f64) {
        let of = |take: fn(&(f64, f64)) -> f64| {
            mean(&self.runs.values().map(take).collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        (of(|run| run.0), of(|run| run.1))
    }

    /// Whether its ratio says something.
    fn tells(&self) -> bool {
        let (waited, slower) = self.centre();
        waited >= LEAST && slower >= LEAST
    }
}

/// One side: its sizes that tell something, and how many seeds the sizes with most of them have.
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

    /// The sizes at which all seeds ran.
    fn full(&self) -> impl Iterator<Item = &Size> {
        self.sizes
            .iter()
            .filter(|size| size.runs.len() == self.seeds)
    }

    /// The logarithm of each seed's rate.
    fn by_seed(&self) -> Result<BTreeMap<u32, f64>, Incomparable> {
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for (seed, (waited, slower)) in self.full().flat_map(|size| &size.runs) {
            let sum = sums.entry(*seed).or_default();
            *sum = (sum.0 + waited, sum.1 + slower);
        }
        let rate = |(seed, (waited, slower)): (u32, (f64, f64))| {
            let is_told = waited > 0.0 && slower > 0.0;
            is_told.then(|| (seed, libm::log(slower / waited)))
        };
        sums.into_iter()
            .map(|sum| rate(sum).ok_or(Incomparable::NotSlower))
            .collect()
    }

    /// The least and the largest slowdown of the sizes at which all seeds ran.
    fn range(&self) -> Option<(f64, f64)> {
        let slower: Vec<f64> = self.full().map(|size| size.centre().1).collect();
        let least = slower.iter().copied().reduce(f64::min)?;
        Some((least, slower.iter().copied().fold(least, f64::max)))
    }

    /// How far sizes with a slowdown in a range depart from the rate of their own seeds.
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

/// Compares two sides; `comparisons` are made together, and share the 5 % of error.
///
/// # Errors
///
/// Where they cannot be compared.
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
        Finding::Differ
    } else if low >= -same && high <= same {
        Finding::Same
    } else {
        Finding::Open
    };
    Ok(RateRatio {
        ratio: libm::exp(mean(&effects).map_err(|_| Incomparable::Seeds)?),
        interval: [libm::exp(low), libm::exp(high)],
        finding,
    })
}
