//! The answer of a search for the smallest sufficient size, and the knee of its curve.

use serde::{Deserialize, Serialize};

use super::{Design, Fit, Point};

/// One end of the range that contains the smallest sufficient size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The size at this end: amount of the resource.
    pub size: u64,
    /// True if all seeds together decide about this size, or if a run failed. False if only the first seed decided.
    pub is_sure: bool,
    /// Reason of the failed run at this size; `None` if no run failed.
    pub died: Option<String>,
}

/// The answer of a search for the smallest sufficient size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Answer {
    /// A run with the amount `plenty` failed.
    PlentyDied {
        /// Why the run failed.
        why: String,
    },
    /// No size below the amount `plenty` was tried.
    NothingTried,
    /// Even the smallest size that was tried is enough.
    Never {
        /// The smallest size that was tried.
        enough: End,
    },
    /// A size is enough, but the seeds do not decide about the smaller sizes that were tried.
    AtMost {
        /// The smallest size that is known to be enough.
        enough: End,
    },
    /// The smallest sufficient size lies above `too_small` and is at most `enough`.
    Between {
        /// The largest size that is known to be too small.
        too_small: End,
        /// The smallest size that is known to be enough.
        enough: End,
    },
}

impl Answer {
    /// True if some size is enough.
    pub fn is_found(&self) -> bool {
        !matches!(self, Self::PlentyDied { .. } | Self::NothingTried)
    }
}

/// Derives the answer from the results at the sizes that were tried, in ascending order of size.
pub(super) fn of(design: &Design, curve: &[Point]) -> Answer {
    let plenty = curve.iter().find(|point| point.size == design.plenty);
    match plenty {
        Some(point) if point.fit == Fit::Died => {
            return Answer::PlentyDied {
                why: point.died.clone().unwrap_or_default(),
            };
        }
        Some(_) if curve.len() > 1 => {}
        _ => return Answer::NothingTried,
    }
    let end = |point: &Point| End {
        size: point.size,
        is_sure: point.is_full && point.fit != Fit::Open,
        died: point.died.clone(),
    };
    let slow = |point: &Point| !point.leans_within(design.within);
    let first = curve.iter().rposition(slow).map_or(0, |below| below + 1);
    // A size that the seeds do not decide cannot be an end. `plenty` is within by definition.
    let above = &curve[first..];
    let sure = |point: &&Point| point.is_full && point.fit == Fit::Within;
    let full = above.iter().find(sure).filter(|point| {
        // If only `plenty` is confirmed by all seeds, a smaller size confirmed by the first seed is more informative.
        point.size < design.plenty || !above.iter().any(|p| !p.is_full && p.fit == Fit::Within)
    });
    let impression = || above.iter().find(|point| point.fit == Fit::Within);
    let Some(enough) = full.or_else(impression) else {
        return Answer::NothingTried;
    };
    let mut below = curve[..first].iter().rev();
    let decided = |point: &&Point| matches!(point.fit, Fit::TooSlow | Fit::Died);
    match below.find(decided) {
        Some(point) => Answer::Between {
            too_small: end(point),
            enough: end(enough),
        },
        None if first == 0 && curve[0].size == enough.size => Answer::Never {
            enough: end(enough),
        },
        None => Answer::AtMost {
            enough: end(enough),
        },
    }
}

/// Returns the knee of a curve: the size at which the slowdown lies farthest below the straight line between the ends
/// of the curve, with both axes scaled to the range between the ends. Satopää and others, "Finding a 'Kneedle' in a
/// Haystack", 2011, without smoothing. `None` if fewer than three sizes have a slowdown, or if the curve is straight or
/// concave.
pub fn knee(curve: &[Point]) -> Option<u64> {
    let points: Vec<(f64, f64, u64)> = curve
        .iter()
        .filter(|point| point.died.is_none())
        .filter_map(|point| Some((point.size as f64, point.slowdown?, point.size)))
        .collect();
    let (first, last) = (points.first()?, points.last()?);
    let (wide, high) = (last.0 - first.0, first.1 - last.1);
    if points.len() < 3 || wide <= 0.0 || high <= 0.0 {
        return None;
    }
    let below = |point: &&(f64, f64, u64)| {
        let (x, y) = ((point.0 - first.0) / wide, (point.1 - last.1) / high);
        (1.0 - x) - y
    };
    points
        .iter()
        .filter(|point| below(point) > 0.0)
        .max_by(|a, b| below(a).total_cmp(&below(b)))
        .map(|point| point.2)
}
