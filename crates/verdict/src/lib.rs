//! Statistics for "is B better than A, by how much, and how certain is that": estimators, intervals, tests, decision
//! rules.
//!
//! This crate contains arithmetic only. It reads no files and does not depend on arenas, kernels, trials or reports.
//! The caller converts records into [`MetricSample`]s and prints the resulting [`Judgement`]s.
//!
//! Begin with [`judge()`], which takes a [`Family`] of metrics that share one error rate and judges each. See
//! [`sequential`] for sampling until every primary metric is decided, [`change`] for series over kernels or dates,
//! [`power`] for the effect that a number of seeds can detect, and [`mod@calibrate`] for the effect of an arena's noise
//! on verdicts. The estimators used by these are public, so that each figure can be checked by itself; `tests/golden`
//! compares them with scipy.
//!
//! # Guarantees
//!
//! - A false "improved", "regressed" or "changed" for any primary metric of a family occurs in at most α (5 %) of
//!   campaigns, for any noise, provided that the order of the variants in each pair was random. For the same guarantee
//!   over a whole campaign, put all its comparisons into one family.
//! - Among the other metrics, at most α of the claims are false (Benjamini and Hochberg). They explain; they do not
//!   decide.
//! - The guarantee holds for pairs and for independent trials. Groups recorded in separate sessions include any drift
//!   within and between the sessions. If the values show drift, intervals are widened and a note says so
//!   ([`mod@serial`]).
//! - "Equivalent" is guaranteed for each metric separately: if the true difference is at the margin, it is claimed in
//!   at most α/2 of all cases.
//! - The `level` of an interval is its actual level: rank tests of few values have few possible levels. With fewer than
//!   six pairs, or fewer than four trials against four, 95 % cannot be reached and nothing is claimed.
//! - In the exact arena the difference of a pair has no measurement noise, but seeds are still a sample: n is the
//!   number of seeds, and three seeds that agree are only three. Only "identical" is a fact about the pairs themselves.
//!
//! Random numbers (for large permutation tests and the bootstrap) come from the family's seed and a generator that
//! never changes, so the same data give the same judgement on every machine.

pub mod adjust;
pub mod bisect;
pub mod calibrate;
pub mod change;
pub mod choice;
mod error;
mod evidence;
pub mod factorial;
mod interval;
mod judge;
pub mod judgement;
pub mod margin;
pub mod nested;
pub mod normal;
pub mod number;
mod ordered;
pub mod outlier;
pub mod power;
pub mod proportion;
mod rank;
pub mod rank_sum;
pub mod rng;
mod rule;
pub mod sample;
pub mod sequential;
pub mod serial;
pub mod sign_flip;
pub mod signed_rank;
pub mod squeeze;
pub mod student;
pub mod tail;
mod tie;
pub mod waiting;
mod weigh;

pub use error::{Result, Side, StatError};
pub use interval::{EXACT_PAIRS, EXACT_UNPAIRED, Interval, Test};
pub use judge::{judge, judge_by};
pub use judgement::{Judgement, Verdict};
pub use margin::Margin;
pub use rule::Rule;
pub use sample::{Data, Family, MetricSample, Pair};
