//! Statistics of "is B better than A, by how much, and how sure is that": estimators, intervals, tests, decision rules.
//!
//! This crate is arithmetic only. It reads no files and knows nothing of arenas, kernels, trials or reports: whoever
//! calls it turns records into [`MetricSample`]s and prints the [`Judgement`]s that come back.
//!
//! Begin with [`judge()`], which takes a [`Family`] of metrics that share one error rate and judges each. Sampling until
//! sure is [`sequential`]; series over kernels or dates are [`change`]; what a number of seeds can find is [`power`];
//! what an arena's noise does to verdicts is [`mod@calibrate`]. The estimators below them are public, because a figure that
//! others are asked to trust must be checkable on its own; `tests/golden` compares them with scipy.
//!
//! # What is promised
//!
//! - False "improved", "regressed" or "changed" among the primary metrics of one family: in at most α (5 %) of
//!   campaigns, whatever the noise, as long as which variant ran first in a pair was left to chance. To promise it for a
//!   whole campaign, put all its comparisons into one family.
//! - Among the other metrics, at most α of the claims made are false (Benjamini and Hochberg); they explain and do not
//!   decide.
//! - The promise is for pairs and for independent trials. Groups recorded in separate sessions carry whatever drifted
//!   within and between them; where the values show it, intervals are widened and a note says so ([`mod@serial`]).
//! - "Equivalent" is promised for each metric by itself: with a true difference at the margin it is said in at most half
//!   of α of all cases.
//! - An interval's `level` is the one achieved: rank tests of few values have few levels. Fewer than six pairs, or four
//!   trials against four, have none of 95 %, and nothing is claimed from them.
//! - In the exact arena a pair's difference has no measurement noise, yet seeds are a sample of trajectories: n is the
//!   number of seeds, and three seeds that agree are still three. Only "identical" is a fact about the pairs themselves.
//!
//! What is random here (large permutation tests, the bootstrap) is drawn from the family's seed by a generator that
//! never changes, so that the same data give the same judgement everywhere.

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

pub use error::{Result, Side, StatError};
pub use interval::{EXACT_PAIRS, EXACT_UNPAIRED, Interval, Test};
pub use judge::{judge, judge_by};
pub use judgement::{Judgement, Verdict};
pub use margin::Margin;
pub use rule::Rule;
pub use sample::{Data, Family, MetricSample, Pair};
