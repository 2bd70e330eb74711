//! A description of the kernel's behaviour in a trial, for comparison with earlier trials.
//!
//! Two things are derived from the kernel's own counters. *Features* are coarse facts, such as "`pgscan_direct` rose by
//! 512 to 1023"; a candidate counts as new if few others had its features. The *place* is a cell of a map with two
//! axes: the share of reclaimed pages that were anonymous, and how often memory was reclaimed. In each region of the
//! space the search keeps the best candidate of each place ("illumination", Mouret and Clune 2015), so that it looks
//! everywhere and not only where the goal seems nearest.

use std::fmt;

use serde::Serialize;

use crate::evidence::Evidence;

/// Added to both counts of a ratio, so that small counts do not give large ratios.
const FLOOR: f64 = 16.0;

/// A coarse fact about a trial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Feature {
    /// Name of the counter, with a leading `Δ` for the difference between two variants; or `death` or `standstill`.
    pub name: String,
    /// Binary logarithm of the counter's increase, rounded down. For a difference between variants: twice the binary
    /// logarithm of the ratio of the hunted variant's counter to the other's, with [`FLOOR`] added to both, rounded
    /// towards zero. For `death` and `standstill`: 1.
    pub size: i32,
}

/// A cell of the map of behaviours, which has two axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MapCell {
    /// Share of reclaimed pages that were anonymous, as an index into [`MapCell::KINDS`].
    pub kind: u8,
    /// Pages reclaimed for each page of memory, as an index into [`MapCell::PRESSURES`].
    pub pressure: u8,
}

impl MapCell {
    /// Meaning of each index of `kind`.
    pub const KINDS: [&'static str; 6] = [
        "nothing reclaimed",
        "file only",
        "mostly file",
        "both",
        "mostly anonymous",
        "anonymous only",
    ];
    /// Meaning of each index of `pressure`, as pages reclaimed for each page of memory.
    pub const PRESSURES: [&'static str; 6] = ["0", "< 1/4", "< 1", "< 4", "< 16", "16 or more"];

    /// Number of cells of the map.
    pub const COUNT: usize = Self::KINDS.len() * Self::PRESSURES.len();

    fn of(evidence: &Evidence) -> Self {
        let reclaimed = evidence.reclaimed();
        if reclaimed == 0 {
            return Self::default();
        }
        let share = evidence.counter("pgsteal_anon") as f64 / reclaimed as f64;
        let kind = match share {
            share if share < 0.02 => 1,
            share if share < 0.35 => 2,
            share if share < 0.65 => 3,
            share if share < 0.98 => 4,
            _ => 5,
        };
        let turns = reclaimed as f64 / evidence.pages() as f64;
        let pressure = match turns {
            turns if turns < 0.25 => 1,
            turns if turns < 1.0 => 2,
            turns if turns < 4.0 => 3,
            turns if turns < 16.0 => 4,
            _ => 5,
        };
        Self { kind, pressure }
    }
}

impl fmt::Display for MapCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = Self::KINDS.get(usize::from(self.kind)).unwrap_or(&"?");
        let pressure = Self::PRESSURES.get(usize::from(self.pressure));
        write!(f, "{kind}, {} of memory", pressure.unwrap_or(&"?"))
    }
}

/// The kernel's behaviour in a trial: coarse facts, and a cell of the map of behaviours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Behaviour {
    /// Coarse facts, sorted and without repetition.
    pub features: Vec<Feature>,
    /// Cell of the map that the behaviour belongs to.
    pub place: MapCell,
}

impl Behaviour {
    /// Returns the behaviour in a trial of the hunted variant. If there is a trial of the other variant, the features
    /// include the differences between the two.
    pub fn of(hunted: &Evidence, other: Option<&Evidence>) -> Self {
        let mut features: Vec<Feature> = Vec::new();
        for (name, rise) in &hunted.counters {
            let size = i32::try_from(rise.max(&1).ilog2()).unwrap_or(i32::MAX);
            features.push(Feature {
                name: name.clone(),
                size,
            });
        }
        if let Some(other) = other {
            let names = hunted.counters.keys().chain(other.counters.keys());
            for name in names {
                let size = steps(ratio(hunted.counter(name), other.counter(name)));
                if size != 0 {
                    let name = format!("Δ{name}");
                    features.push(Feature { name, size });
                }
            }
        }
        let happened = [
            ("death", hunted.death.is_some()),
            ("standstill", hunted.standstill.is_some()),
        ];
        for (name, _) in happened.iter().filter(|(_, is)| *is) {
            let name = (*name).to_owned();
            features.push(Feature { name, size: 1 });
        }
        features.sort_unstable();
        features.dedup();
        Self {
            features,
            place: MapCell::of(hunted),
        }
    }
}

/// Returns the distance between the counters of two trials: the sum, over all counters that rose in either trial, of
/// the absolute binary logarithm of their ratio.
pub fn distance(a: &Evidence, b: &Evidence) -> f64 {
    let mut names: Vec<&String> = a.counters.keys().chain(b.counters.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let each = names.into_iter();
    each.map(|name| ratio(a.counter(name), b.counter(name)).abs())
        .sum()
}

/// Returns the binary logarithm of the ratio of two counts, each increased by [`FLOOR`].
fn ratio(a: u64, b: u64) -> f64 {
    ((a as f64 + FLOOR) / (b as f64 + FLOOR)).log2()
}

/// Returns twice the logarithm, rounded towards zero.
fn steps(log: f64) -> i32 {
    let steps = (log * 2.0).clamp(-128.0, 128.0);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it was clamped to a small range"
    )]
    let steps = steps as i32;
    steps
}
