//! What a search says, and where its curve bends.

use serde::{Deserialize, Serialize};

use super::{Design, Fit, Point};

/// One end of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The size.
    pub size: u64,
    /// Whether all seeds say so, or a run died there; else the first seed alone does.
    pub is_sure: bool,
    /// Why a run died there, where one did.
    pub died: Option<String>,
}

/// What a search says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Answer {
    /// A run died with plenty.
    PlentyDied {
        /// Why.
        why: String,
    },
    /// Nothing smaller than plenty was tried.
    NothingTried,
    /// Even the smallest size that was tried is enough.
    Never {
        /// That size.
        enough: End,
    },
    /// A size is enough, and the smaller ones that were tried are left open by their seeds.
    AtMost {
        /// That size.
        enough: End,
    },
    /// The smallest size that is enough lies above the one and is at most the other.
    Between {
        /// The largest size that is too small.
        too_small: End,
        /// The smallest size that is enough.
        enough: End,
    },
}

impl Answer {
    /// Whether some size is enough.
    pub fn is_found(&self) -> bool {
        !matches!(self, Self::PlentyDied { .. } | Self::NothingTried)
    }
}

/// What these points say.
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
    // What the seeds leave open is no end. Plenty is within by definition.
    let above = &curve[first..];
    let sure = |point: &&Point| point.is_full && point.fit == Fit::Within;
    let full = above.iter().find(sure).filter(|point| {
        // A size that only plenty confirms says less than the first seed does.
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

/// The knee of a curve: the size at which the slowdown lies farthest below the straight line between the ends of the curve, both
/// axes scaled to them. Satopää and others, "Finding a 'Kneedle' in a Haystack", 2011, without smoothing. `None` where fewer than
/// three sizes came to an end or nothing bends.
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
