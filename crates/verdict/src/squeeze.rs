//! Finds the smallest amount of a resource, such as memory, at which a cost exceeds the cost with the amount *plenty*
//! by at most a given fraction.
//!
//! # The design
//!
//! 1. With the amount *plenty* ([`Design::plenty`]), every seed runs once.
//! 2. *Scouting*, with the first seed only: the range from [`Design::least`] to plenty is bisected on a logarithmic
//!    scale until the gap between too slow and within is at most [`Design::resolution`], or only the runs for the next
//!    step are left.
//! 3. *Confirming*: both ends of the gap run with the other seeds. If the seeds leave an end open, the answer moves
//!    outwards to the next size that all seeds decide.
//!
//! A run is compared with the run of the same seed with plenty. The log slowdowns of the seeds get Student's interval
//! of 95 % ([`mod@crate::student`]). A size is *within* if the whole interval is at most the fraction, and *too slow*
//! if the whole interval is above it. One failed run is enough to make a size too small. The answer is two sizes: the
//! largest that is too small and the smallest that is enough. It holds for these sizes. Sizes in between are not
//! tested, and larger sizes only as far as they were tried.
//!
//! The next run depends only on the runs so far, so an interrupted search can be resumed from its runs.

mod answer;
mod search;

use serde::{Deserialize, Serialize};

pub use answer::{Answer, End, knee};
pub use search::{Search, Step};

use crate::number::{floor_u64, log_ratio, mean};
use crate::student;

/// Range and precision of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// The largest amount. Costs at other amounts are compared with the cost at this amount.
    pub plenty: u64,
    /// The smallest amount that may be tried.
    pub least: u64,
    /// Step of the amounts tried: amounts are rounded up to a multiple of it.
    pub step: u64,
    /// Fraction by which the cost may exceed the cost at the amount `plenty`: 0.05 is 5 %.
    pub within: f64,
    /// Number of seeds with which a size is confirmed.
    pub seeds: u32,
    /// Maximum number of runs of the whole search.
    pub runs: u32,
    /// The search stops when the relative gap between the sizes "too small" and "enough" is at most this.
    pub resolution: f64,
}

impl Design {
    /// Returns the logarithm of the largest allowed slowdown factor.
    fn threshold(&self) -> f64 {
        libm::log1p(self.within)
    }

    /// Rounds a size up to a multiple of the step, within the range of the design.
    fn at(&self, size: u64) -> u64 {
        let step = self.step.max(1);
        let size = size.div_ceil(step) * step;
        size.clamp(self.least, self.plenty)
    }

    /// Returns the geometric mean of two sizes, rounded up to a multiple of the step. `None` if the sizes are closer
    /// than the resolution or no multiple lies between them.
    fn between(&self, small: u64, large: u64) -> Option<u64> {
        let is_wide = large as f64 / small as f64 > 1.0 + self.resolution;
        let size = self.at(floor_u64((small as f64).sqrt() * (large as f64).sqrt()));
        (is_wide && small < size && size < large).then_some(size)
    }
}

/// Outcome of one run at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Cost of the run, above zero; lower is better.
    Cost(f64),
    /// The run failed, for this reason.
    Died(String),
}

/// Verdict on one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// The cost is within the allowed fraction.
    Within,
    /// The cost exceeds the allowed fraction.
    TooSlow,
    /// Undecided: the interval of the slowdown includes the threshold.
    Open,
    /// A run with this size failed.
    Died,
}

/// Results of all runs at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The size: amount of the resource.
    pub size: u64,
    /// Number of seeds that ran with this size.
    pub seeds: u32,
    /// Mean slowdown against the amount `plenty`, as a fraction (0.05 is 5 % slower); `None` if no run succeeded.
    pub slowdown: Option<f64>,
    /// 95 % interval of the slowdown; `None` if fewer than two seeds succeeded both with this size and with `plenty`.
    pub interval: Option<[f64; 2]>,
    /// Verdict on this size. It is provisional while not all seeds have run.
    pub fit: Fit,
    /// True if all seeds ran, or no more runs are needed for a verdict.
    pub is_full: bool,
    /// Reason of the first failed run; `None` if no run failed.
    pub died: Option<String>,
}

impl Point {
    fn new(
        design: &Design,
        size: u64,
        outcomes: &[(u32, &Outcome)],
        plenty: &[Option<f64>],
    ) -> Self {
        let mut ratios = Vec::with_capacity(outcomes.len());
        let mut died = None;
        for (seed, outcome) in outcomes {
            match outcome {
                Outcome::Cost(cost) => {
                    if let Some(Some(base)) = plenty.get(*seed as usize) {
                        ratios.push(log_ratio(*base, *cost));
                    }
                }
                Outcome::Died(why) => died = died.or(Some(why.clone())),
            }
        }
        let seeds = u32::try_from(outcomes.len()).unwrap_or(u32::MAX);
        let centre = mean(&ratios).ok();
        let interval = student::interval(&ratios).ok();
        let threshold = design.threshold();
        let all = seeds >= design.seeds;
        let fit = match (centre, interval) {
            _ if died.is_some() => Fit::Died,
            _ if size == design.plenty => Fit::Within,
            (_, Some(interval)) if all && interval.high <= threshold => Fit::Within,
            (_, Some(interval)) if all && interval.low > threshold => Fit::TooSlow,
            (_, Some(_)) if all => Fit::Open,
            (Some(centre), _) if centre <= threshold => Fit::Within,
            (Some(_), _) => Fit::TooSlow,
            (None, _) => Fit::Open,
        };
        Self {
            size,
            seeds,
            slowdown: centre.map(libm::expm1),
            interval: interval.map(|i| [libm::expm1(i.low), libm::expm1(i.high)]),
            fit,
            is_full: all || died.is_some(),
            died,
        }
    }

    /// True if the results so far suggest that this size is enough, so that a smaller size is worth trying.
    fn leans_within(&self, within: f64) -> bool {
        match self.fit {
            Fit::Within => true,
            Fit::TooSlow | Fit::Died => false,
            Fit::Open => self.slowdown.is_some_and(|slowdown| slowdown <= within),
        }
    }
}
