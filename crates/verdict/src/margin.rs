//! Equivalence margins: the largest difference that does not matter. All defaults are defined here, each with its
//! reason.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest difference between B and A that still counts as equivalent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Margin {
    /// Fraction of A: 0.01 is one percent. For ratios the bounds are 1 + m and 1 / (1 + m).
    Relative(f64),
    /// Amount in the metric's unit.
    Absolute(f64),
}

impl Margin {
    /// Returns the size of the margin: a fraction of A, or an amount in the metric's unit.
    pub fn size(self) -> f64 {
        match self {
            Self::Relative(size) | Self::Absolute(size) => size,
        }
    }
}

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relative(part) => write!(f, "{} %", round(part * 100.0)),
            Self::Absolute(size) => write!(f, "{size}"),
        }
    }
}

/// Removes rounding noise from a percentage: 0.07 times 100 is not exactly 7 in binary.
fn round(percent: f64) -> f64 {
    (percent * 1e9).round() / 1e9
}

/// A default margin, with the metrics it applies to and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Default {
    /// Pattern for the names of the metrics with this margin; `*` matches any characters.
    pub metric: &'static str,
    /// Pattern for the units of the metrics with this margin; `*` matches any unit.
    pub unit: &'static str,
    /// The largest difference that does not matter for these metrics.
    pub margin: Margin,
    /// Reason for this margin, as one sentence.
    pub reason: &'static str,
}

/// All default margins. The first match is used, so specific entries come before general entries.
pub const DEFAULTS: &[Default] = &[
    Default {
        metric: "*success*",
        unit: "share",
        margin: Margin::Absolute(0.01),
        reason: "success is reported in whole percent by the suites that measure it, so one point is the least they show",
    },
    Default {
        metric: "*p99*",
        unit: "*",
        margin: Margin::Relative(0.05),
        reason: "few accesses make a tail, and placement of single faults moves it by some percent",
    },
    Default {
        metric: "*max*",
        unit: "*",
        margin: Margin::Relative(0.10),
        reason: "a maximum is one access, the least stable of all statistics",
    },
    Default {
        metric: "*deviation*",
        unit: "*",
        margin: Margin::Relative(0.10),
        reason: "a standard deviation of n values is itself uncertain by one part in the root of 2n",
    },
    Default {
        metric: "*stall*",
        unit: "nanos",
        margin: Margin::Relative(0.02),
        reason: "stalls are the sum of few long waits, and pressure itself is averaged over seconds",
    },
    Default {
        metric: "*",
        unit: "nanos",
        margin: Margin::Relative(0.01),
        reason: "mailing-list tables argue about times from about one percent on",
    },
    Default {
        metric: "*",
        unit: "share",
        margin: Margin::Absolute(0.005),
        reason: "half a point disappears when shares are shown in whole percent",
    },
    Default {
        metric: "*",
        unit: "percent",
        margin: Margin::Absolute(0.5),
        reason: "half a point disappears when shares are shown in whole percent",
    },
    Default {
        metric: "*",
        unit: "count",
        margin: Margin::Relative(0.01),
        reason: "one fault, scan or migration in a hundred costs less than a percent of any time it is part of",
    },
    Default {
        metric: "*",
        unit: "pages",
        margin: Margin::Relative(0.01),
        reason: "one page in a hundred is less than kernels differ in their own footprint",
    },
    Default {
        metric: "*",
        unit: "bytes",
        margin: Margin::Relative(0.01),
        reason: "one byte in a hundred is less than kernels differ in their own footprint",
    },
    Default {
        metric: "*",
        unit: "bytes-per-second",
        margin: Margin::Relative(0.01),
        reason: "rates are times upside down",
    },
    Default {
        metric: "*",
        unit: "per-second",
        margin: Margin::Relative(0.01),
        reason: "rates are times upside down",
    },
    Default {
        metric: "*",
        unit: "*",
        margin: Margin::Relative(0.01),
        reason: "nothing is known about this unit, and one percent is what most tables show",
    },
];

/// Returns the default margin of a metric with this name and unit.
pub fn default_for(name: &str, unit: &str) -> Default {
    DEFAULTS
        .iter()
        .copied()
        .find(|entry| fits(entry.metric, name) && fits(entry.unit, unit))
        .unwrap_or(DEFAULTS[DEFAULTS.len() - 1])
}

/// True if `name` matches a pattern in which `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The margin that a judgement used, and its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarginUsed {
    /// The margin as the caller gave it, or the default margin.
    pub margin: Margin,
    /// Lower bound of equivalence, on the scale of the effect.
    pub low: f64,
    /// Upper bound of equivalence, on the scale of the effect.
    pub high: f64,
    /// The reason for the default margin; `None` if the margin was given.
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_special_default_wins() {
        assert_eq!(
            default_for("thp-success", "share").margin,
            Margin::Absolute(0.01)
        );
        assert_eq!(
            default_for("contiguity", "share").margin,
            Margin::Absolute(0.005)
        );
        assert_eq!(
            default_for("swap-in", "nanos").margin,
            Margin::Relative(0.01)
        );
        assert_eq!(
            default_for("access-p99.9", "nanos").margin,
            Margin::Relative(0.05)
        );
        assert_eq!(
            default_for("whatever", "furlongs").margin,
            Margin::Relative(0.01)
        );
    }

    #[test]
    fn every_default_says_why() {
        assert!(DEFAULTS.iter().all(|entry| entry.reason.len() > 20));
    }

    #[test]
    fn a_star_stands_for_any_characters_and_nothing_else_does() {
        assert!(fits("*p99*", "read-p99.9"));
        assert!(fits("count", "count"));
        assert!(!fits("count", "counts"));
        assert!(!fits("*max*", "mix"));
        assert!(fits("a*c", "abc") && !fits("a*c", "abd"));
    }
}
