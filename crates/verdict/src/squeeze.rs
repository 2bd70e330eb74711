//! The smallest amount of something (memory, say) at which a cost stays within a share of what it is with plenty.
//!
//! # The design
//!
//! 1. With plenty, every seed runs once.
//! 2. *Scouting*, with the first seed alone: the range from [`Design::least`] to plenty is bisected on a logarithmic scale until
//!    the gap between too slow and within is [`Design::resolution`], or only the runs for the next step are left.
//! 3. *Confirming*: both ends of the gap run with the other seeds. An end that its seeds leave open moves the answer
//!    outwards, to the next size that all seeds decide.
//!
//! A run is compared with the run of the same seed with plenty. Of the seeds' logarithms of slowdown Student's interval of
//! 95 % is taken ([`mod@crate::student`]): a size is *within* where all of it is at most the share, *too slow* where all
//! of it is above. A run that died decides alone: its size is too small. So the answer is two sizes, the largest that is too
//! small and the smallest that is enough, and what it promises is of those sizes: that nothing in between is better or worse
//! is not tested, nor is what is larger than both, beyond the sizes that were tried.
//!
//! What runs next depends on what has run and on nothing else, so a search goes on from its runs wherever it was stopped.

mod answer;
mod search;

use serde::{Deserialize, Serialize};

pub use answer::{Answer, End, knee};
pub use search::{Search, Step};

use crate::number::{floor_u64, log_ratio, mean};
use crate::student;

/// What is searched, and how thoroughly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// The amount that is plenty.
    pub plenty: u64,
    /// The smallest amount that is tried.
    pub least: u64,
    /// Amounts are multiples of this.
    pub step: u64,
    /// Share by which the cost may exceed that with plenty: 0.05 is 5 %.
    pub within: f64,
    /// Seeds.
    pub seeds: u32,
    /// Most runs in all.
    pub runs: u32,
    /// The gap between too small and enough that is narrow enough, as a share.
    pub resolution: f64,
}

impl Design {
    /// The share as a logarithm.
    fn threshold(&self) -> f64 {
        libm::log1p(self.within)
    }

    /// A size that can be tried: a multiple of the step within bounds.
    fn at(&self, size: u64) -> u64 {
        let step = self.step.max(1);
        let size = size.div_ceil(step) * step;
        size.clamp(self.least, self.plenty)
    }

    /// The size between two on a logarithmic scale, where they are further apart than the resolution.
    fn between(&self, small: u64, large: u64) -> Option<u64> {
        let is_wide = large as f64 / small as f64 > 1.0 + self.resolution;
        let size = self.at(floor_u64((small as f64).sqrt() * (large as f64).sqrt()));
        (is_wide && small < size && size < large).then_some(size)
    }
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A cost above zero; more is worse.
    Cost(f64),
    /// It came to no end that counts, for this reason.
    Died(String),
}

/// What is known of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// The cost is within the share.
    Within,
    /// The cost is above it.
    TooSlow,
    /// The seeds leave it open.
    Open,
    /// A run died.
    Died,
}

/// A size that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The size.
    pub size: u64,
    /// Seeds that ran.
    pub seeds: u32,
    /// Mean slowdown against plenty as a share (0.05 is 5 % slower); `None` where no run came to an end.
    pub slowdown: Option<f64>,
    /// Its interval of 95 %; `None` with fewer than two seeds.
    pub interval: Option<[f64; 2]>,
    /// What follows. Of a size with fewer seeds than the design has it is a first impression.
    pub fit: Fit,
    /// Whether all seeds ran, or it needs no more of them.
    pub is_full: bool,
    /// Why the first run that died did.
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

    /// Which way the size leans: whether a smaller one is worth a try.
    fn leans_within(&self, within: f64) -> bool {
        match self.fit {
            Fit::Within => true,
            Fit::TooSlow | Fit::Died => false,
            Fit::Open => self.slowdown.is_some_and(|slowdown| slowdown <= within),
        }
    }
}
