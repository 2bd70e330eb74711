//! Types for measured things: sizes and times, metrics, series and histograms, each with its unit.
//!
//! This is the lowest crate; it imports no other crate of pagetide. Begin reading in [`Unit`] and [`Metric`]. A
//! [`Series`] holds rows over time, a [`Sampler`] collects a series in bounded memory while the clock runs, and a
//! [`Histogram`] holds a distribution.

pub mod command;
mod histogram;
mod metric;
mod nearest;
mod number;
mod roff;
mod sampler;
mod series;
mod units;

pub use histogram::{Histogram, HistogramSummary};
pub use metric::{Direction, Metric, MetricDef, Unit, Value, multiple_of, multiples};
pub use nearest::{choices, hint, nearest, slip};
pub use number::floor;
pub use roff::roff;
pub use sampler::Sampler;
pub use series::{Column, ColumnData, Series, SeriesError};
pub use units::{Bytes, Nanos, PAGE_SIZE, Pages, UnitError};
