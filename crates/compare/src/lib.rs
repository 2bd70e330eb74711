//! Comparisons: records of several variants, paired by seed, judged and explained.
//!
//! This crate turns rows of the store's index into values, pairs them, lets `pagetide-verdict` judge them as one
//! family, and returns a [`Comparison`]: plain data, in which every number refers to the records it comes from. It
//! refuses what cannot be compared. It depends neither on arenas nor on the layout of tables.
//!
//! Begin reading at [`compare_campaign`] and [`compare_two`], then [`comparison`] (what comes out).

pub mod agreement;
pub mod bisected;
mod calibration;
pub mod comparison;
pub mod covered;
mod difference;
mod divergence;
mod doubts;
mod error;
pub mod explain;
pub mod followed;
mod guests;
pub mod history;
mod input;
mod judge;
pub mod kinds;
mod limit;
mod matching;
pub mod matrixed;
mod medians;
mod noise;
pub mod notes;
pub mod observation;
mod once;
mod pairs;
mod power;
pub mod pressure;
pub mod profiled;
mod scale;
mod select;
pub mod sizes;
pub mod squeezed;
pub mod squeezes;
mod tails;
pub mod tried;
mod turns;
pub mod version;

pub use calibration::{CalibrationError, CalibrationNote};
pub use comparison::{
    Caution, Cell, Column, Comparison, FailOn, InterimLook, InvalidTrial, MetricRow, Overall, Side,
    TrialRef, Values,
};
pub use difference::{Difference, differences};
pub use divergence::{Change, Divergence, first_divergence, largest_change};
pub use error::CompareError;
pub use history::{History, history};
pub use judge::ALPHA;
pub use medians::{InvalidSeed, MetricMedian, medians};
pub use noise::{TimeNeed, times_needed};
pub use observation::{Observation, ObservationError, observation};
pub use pairs::pairs;
pub use power::{MAX_SEEDS, MetricPower, PowerQuestion};
pub use scale::{Room, Scale};
pub use select::{
    Allowance, Names, compare_campaign, compare_note, compare_two, show_campaign, show_note,
};
pub use tails::{Tails, tails};
