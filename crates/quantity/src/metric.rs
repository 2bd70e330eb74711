//! A metric: a number with a unit and the direction that is better.

use serde::{Deserialize, Serialize};

/// Unit of a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds; in the exact arena, of virtual time.
    Nanos,
    /// Bytes.
    Bytes,
    /// Base pages of 4 KiB.
    Pages,
    /// Number of events.
    Count,
    /// Fraction of a whole, from 0 to 1.
    Share,
    /// Bytes per second.
    BytesPerSecond,
    /// Events per second.
    PerSecond,
    /// Ratio of two quantities of the same kind.
    Ratio,
}

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Smaller values are better.
    Lower,
    /// Larger values are better.
    Higher,
    /// Neither is better: the metric explains a result and never decides one.
    Neutral,
}

/// A metric as a scenario declares it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MetricDef {
    /// Name in kebab case, unique within the scenario.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Which direction is better.
    pub direction: Direction,
    /// Whether this metric decides the outcome of a campaign. The primary metrics share one error rate.
    pub primary: bool,
    /// One sentence for the user: what is measured, from which event to which.
    pub help: &'static str,
}

impl MetricDef {
    /// A time in nanoseconds; lower is better.
    pub const fn time(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Nanos,
            direction: Direction::Lower,
            primary: false,
            help,
        }
    }

    /// A number of events.
    pub const fn count(name: &'static str, direction: Direction, help: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Count,
            direction,
            primary: false,
            help,
        }
    }

    /// A fraction from 0 to 1.
    pub const fn share(name: &'static str, direction: Direction, help: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Share,
            direction,
            primary: false,
            help,
        }
    }

    /// A metric of any unit.
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

    /// The same metric, marked as one that decides a campaign.
    #[must_use]
    pub const fn primary(self) -> Self {
        Self {
            primary: true,
            ..self
        }
    }
}

/// Metrics that are a multiple of another metric of the same trial, with that metric. The factor is the same in all
/// trials of a workload, so both metrics have the same effect and a comparison judges it once.
const MULTIPLES: [(&str, &str); 2] = [
    ("access-mean", "access-time"),
    ("throughput-mean", "throughput"),
];

/// The metric that the metric `name` is a fixed multiple of; `None` if it is independent.
pub fn multiple_of(name: &str) -> Option<&'static str> {
    let found = MULTIPLES.iter().find(|(multiple, _)| *multiple == name);
    found.map(|(_, of)| *of)
}

/// All metrics that are a fixed multiple of another metric, as (multiple, other metric).
pub fn multiples() -> impl Iterator<Item = (&'static str, &'static str)> {
    MULTIPLES.into_iter()
}

/// A measured value, or the reason why it is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// The value; always finite.
    Number(f64),
    /// Why there is no value, such as "not on this kernel".
    Absent(String),
}

impl Value {
    /// The number, or `None` if the value is missing.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(n) => Some(*n),
            Value::Absent(_) => None,
        }
    }
}

/// A metric as a trial measured it. It carries unit and direction, so that a record stays readable after the scenario's
/// definition changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name in kebab case.
    pub name: String,
    /// Unit of the value.
    pub unit: Unit,
    /// Which direction is better.
    pub direction: Direction,
    /// Whether this metric decides the outcome of a campaign.
    pub primary: bool,
    /// The value, or why it is missing.
    pub value: Value,
}

impl Metric {
    /// A value of a declared metric. NaN and infinity are stored as missing.
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

    /// A declared metric that this trial could not measure, with the reason.
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
