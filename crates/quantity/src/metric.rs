//! Metrics: named numbers, each with a unit and the direction that is better.

use serde::{Deserialize, Serialize};

/// Unit of a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds; in the exact arena, nanoseconds of virtual time.
    Nanos,
    /// A size in bytes.
    Bytes,
    /// A number of base pages of 4 KiB.
    Pages,
    /// Number of events.
    Count,
    /// Fraction of a whole, from 0 to 1.
    Share,
    /// A rate in bytes per second.
    BytesPerSecond,
    /// A rate in events per second.
    PerSecond,
    /// Ratio of two quantities of the same kind.
    Ratio,
}

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Smaller values are better.
    Lower,
    /// Larger values are better.
    Higher,
    /// Neither direction is better: the metric explains a result and never decides one.
    Neutral,
}

/// Definition of a metric, as declared by a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MetricDef {
    /// Name of the metric in kebab case, unique within the scenario.
    pub name: &'static str,
    /// Unit of the metric's values.
    pub unit: Unit,
    /// Direction in which the metric improves.
    pub direction: Direction,
    /// True if this metric decides the outcome of a campaign. All primary metrics share one error rate.
    pub primary: bool,
    /// Help text for the user, one sentence: what is measured, from which event to which.
    pub help: &'static str,
}

impl MetricDef {
    /// Defines a metric that is a time in nanoseconds; lower values are better. It is not primary.
    pub const fn time(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Nanos,
            direction: Direction::Lower,
            primary: false,
            help,
        }
    }

    /// Defines a metric that is a number of events. It is not primary.
    pub const fn count(name: &'static str, direction: Direction, help: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Count,
            direction,
            primary: false,
            help,
        }
    }

    /// Defines a metric that is a fraction from 0 to 1. It is not primary.
    pub const fn share(name: &'static str, direction: Direction, help: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Share,
            direction,
            primary: false,
            help,
        }
    }

    /// Defines a metric of any unit. It is not primary.
    pub const fn of(
        name: &'static str,
        unit: Unit,
        direction: Direction,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            unit,
            direction,
            primary: false,
            help,
        }
    }

    /// Returns the same definition, marked as primary: the metric decides the outcome of a campaign.
    #[must_use]
    pub const fn primary(self) -> Self {
        Self {
            primary: true,
            ..self
        }
    }
}

/// Pairs of metrics of which the first is a fixed multiple of the second, in scenarios that have both. The factor is
/// the same in all trials of a workload, so both metrics have the same effect and a comparison judges it once.
const MULTIPLES: [(&str, &str); 2] = [
    ("access-mean", "access-time"),
    ("throughput-mean", "throughput"),
];

/// Returns the metric of which `name` is a fixed multiple, in scenarios that have both; `None` if there is no such one.
pub fn multiple_of(name: &str) -> Option<&'static str> {
    let found = MULTIPLES.iter().find(|(multiple, _)| *multiple == name);
    found.map(|(_, of)| *of)
}

/// Returns all pairs of metrics of which the first is a fixed multiple of the second.
pub fn multiples() -> impl Iterator<Item = (&'static str, &'static str)> {
    MULTIPLES.into_iter()
}

/// A measured value, or the reason why it is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// The measured value, in the metric's unit; always finite.
    Number(f64),
    /// No value, for this reason, such as "not on this kernel".
    Absent(String),
}

impl Value {
    /// Returns the number; `None` if the value is missing.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(n) => Some(*n),
            Value::Absent(_) => None,
        }
    }
}

/// A metric as measured in a trial. Unit and direction are included, so that a record stays readable after the
/// scenario's definition changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name of the metric in kebab case.
    pub name: String,
    /// Unit of the value.
    pub unit: Unit,
    /// Direction in which the metric improves.
    pub direction: Direction,
    /// True if this metric decides the outcome of a campaign.
    pub primary: bool,
    /// The measured value, or the reason why it is missing.
    pub value: Value,
}

impl Metric {
    /// Creates a metric from its definition and value. NaN and infinity are stored as a missing value.
    pub fn new(def: &MetricDef, value: f64) -> Self {
        let value = if value.is_finite() {
            Value::Number(value)
        } else {
            Value::Absent("not a finite number".to_owned())
        };
        Self {
            name: def.name.to_owned(),
            unit: def.unit,
            direction: def.direction,
            primary: def.primary,
            value,
        }
    }

    /// Creates a metric without a value, with the reason why this trial could not measure it.
    pub fn absent(def: &MetricDef, why: impl Into<String>) -> Self {
        Self {
            name: def.name.to_owned(),
            unit: def.unit,
            direction: def.direction,
            primary: def.primary,
            value: Value::Absent(why.into()),
        }
    }
}
