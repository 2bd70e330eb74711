//! A metric: a number with a unit and a direction, so that "better" never has to be guessed.

use serde::{Deserialize, Serialize};

/// What a metric's value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds (virtual ones in the exact arena).
    Nanos,
    /// Bytes.
    Bytes,
    /// Base pages of 4 KiB.
    Pages,
    /// A plain count of events.
    Count,
    /// A share from 0 to 1.
    Share,
    /// Bytes a second.
    BytesPerSecond,
    /// Events a second.
    PerSecond,
    /// A ratio of two like quantities.
    Ratio,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Smaller values are better.
    Lower,
    /// Larger values are better.
    Higher,
    /// Neither: the value explains a result and never decides one.
    Neutral,
}

/// A metric as a scenario declares it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MetricDef {
    /// Name in kebab case, unique within the scenario.
    pub name: &'static str,
    /// What the value counts.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// Whether verdicts on this metric decide a campaign (they share its error rate).
    pub primary: bool,
    /// One sentence: what is measured, from where to where.
    pub help: &'static str,
}

impl MetricDef {
    /// A time in nanoseconds, lower is better.
    pub const fn time(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Nanos,
            direction: Direction::Lower,
            primary: false,
            help,
        }
    }

    /// A count of events.
    pub const fn count(name: &'static str, direction: Direction, help: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Count,
            direction,
            primary: false,
            help,
        }
    }

    /// A share from 0 to 1.
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

    /// The same metric, as one that decides.
    #[must_use]
    pub const fn primary(self) -> Self {
        Self {
            primary: true,
            ..self
        }
    }
}

/// A measured value, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// The value; always finite.
    Number(f64),
    /// Why there is none, such as "not on this kernel".
    Absent(String),
}

impl Value {
    /// The number, if there is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(n) => Some(*n),
            Value::Absent(_) => None,
        }
    }
}

/// A metric as a trial measured it; self-describing, so that a record outlives the scenario's definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name in kebab case.
    pub name: String,
    /// What the value counts.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// Whether it decides a campaign.
    pub primary: bool,
    /// The value.
    pub value: Value,
}

impl Metric {
    /// A measured value of a declared metric; a value that is not finite becomes absent.
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

    /// A declared metric that this trial could not measure.
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
