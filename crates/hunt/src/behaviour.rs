//! A description of the kernel's behaviour in a trial, for comparison with earlier trials.
//!
//! Two things are derived from the kernel's own counters. *Features* are coarse facts, such as "`pgscan_direct` rose by
//! 512 to 1023"; a candidate counts as new if few others had its features. The *place* is a cell of a map with two
//! axes: the share of reclaimed pages that were anonymous, and how often memory was reclaimed. In each region of the
//! space the search keeps the best candidate of each place ("illumination", Mouret and Clune 2015), so that it looks
//! everywhere and not only where the goal seems nearest.
//!
//! If trials are profiled, features also say which functions of memory management ran. On 6.12 a trial of 16 MiB has
//! some 520 of these and 35 counters, and functions of one path run together. So features of functions are coarser
//! than those of counters and weigh less ([`Feature::weight`]): all functions of a trial together weigh about as much
//! as all its counters.

use std::fmt;

use serde::Serialize;

use crate::evidence::Evidence;
use crate::executed::Executed;

/// Added to both counts of a ratio, so that small counts do not give large ratios.
const FLOOR: f64 = 16.0;
/// The same for instructions of a function.
const INSTRUCTIONS_FLOOR: f64 = 4096.0;
/// Weight of a function compared with a counter.
const FUNCTION_WEIGHT: f64 = 1.0 / 16.0;
/// The number of a function's instructions is rounded down to a power of 16, which is 2 to this power.
const FUNCTION_STEP: u32 = 4;
/// Beginning of the name of a feature about a function or a changed line that ran.
const RAN: &str = "ran ";
/// Beginning of the name of a feature about a function whose number of instructions differs between the variants.
const RAN_DIFFERENTLY: &str = "Δran ";

/// A coarse fact about a trial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Feature {
    /// Name of the counter, with a leading `Δ` for the difference between two variants; or `death` or `standstill`.
    /// `ran NAME` for a function of memory management, `ran FILE:LINE` for a line that the patch changes.
    pub name: String,
    /// Binary logarithm of the counter's increase, rounded down. For a difference between variants: twice the binary
    /// logarithm of the ratio of the hunted variant's counter to the other's, with [`FLOOR`] added to both, rounded
    /// towards zero. For `death`, `standstill` and a changed line: 1. For a function: a quarter of the binary logarithm
    /// of its instructions, rounded down; for its difference, the binary logarithm of the ratio, rounded towards zero.
    pub size: i32,
}

impl Feature {
    /// Returns the weight of the feature compared with that of a counter, which is 1.
    pub fn weight(&self) -> f64 {
        let is_line = || self.name.contains(':');
        match self.name.strip_prefix('Δ').unwrap_or(&self.name) {
            name if name.starts_with(RAN) && !is_line() => FUNCTION_WEIGHT,
            _ => 1.0,
        }
    }
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
        if let Some(executed) = &hunted.executed {
            features.extend(ran(executed));
            let other = other.and_then(|other| other.executed.as_ref());
            features.extend(
                other
                    .into_iter()
                    .flat_map(|other| ran_differently(executed, other)),
            );
        }
        features.sort_unstable();
        features.dedup();
        Self {
            features,
            place: MapCell::of(hunted),
        }
    }
}

/// Returns a feature for each function and each line of the patch that ran.
fn ran(executed: &Executed) -> impl Iterator<Item = Feature> {
    let functions = executed.functions.iter();
    let functions = functions.map(|(name, instructions)| Feature {
        name: format!("{RAN}{name}"),
        size: i32::try_from(instructions.max(&1).ilog2() / FUNCTION_STEP).unwrap_or(i32::MAX),
    });
    let lines = executed.patch.iter().flat_map(|patch| &patch.lines);
    let lines = lines.filter(|line| line.executed > 0).map(|line| Feature {
        name: format!("{RAN}{}:{}", line.file, line.line),
        size: 1,
    });
    functions.chain(lines)
}

/// Returns a feature for each function of which the variants executed numbers of instructions that differ by a factor
/// of two or more.
fn ran_differently<'a>(
    hunted: &'a Executed,
    other: &'a Executed,
) -> impl Iterator<Item = Feature> + 'a {
    ratios(hunted, other).map(|(name, log)| Feature {
        name: format!("{RAN_DIFFERENTLY}{name}"),
        size: steps(log / 2.0),
    })
}

/// Returns the distance between two trials: the sum, over all counters that rose in either trial, of the absolute
/// binary logarithm of their ratio. If it is known which functions ran, the same sum over the functions is added, with
/// the weight of functions. Functions whose instructions differ by a factor below two are left out, because most such
/// differences are mere scatter.
pub fn distance(a: &Evidence, b: &Evidence) -> f64 {
    let mut names: Vec<&String> = a.counters.keys().chain(b.counters.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let each = names.into_iter();
    let of_counters: f64 = each
        .map(|name| ratio(a.counter(name), b.counter(name)).abs())
        .sum();
    let (Some(a), Some(b)) = (&a.executed, &b.executed) else {
        return of_counters;
    };
    let each = ratios(a, b).map(|(_, log)| log.abs());
    of_counters + FUNCTION_WEIGHT * each.sum::<f64>()
}

/// Returns each function whose instructions, increased by [`INSTRUCTIONS_FLOOR`], differ by a factor of two or more,
/// with the binary logarithm of their ratio. In kernels of different releases, functions have different names and
/// bodies. So for such kernels, a function that ran in only one of the trials is left out.
fn ratios<'a>(a: &'a Executed, b: &'a Executed) -> impl Iterator<Item = (&'a String, f64)> {
    let is_same_source = a.release == b.release;
    let mut names: Vec<&String> = a.functions.keys().chain(b.functions.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter_map(move |name| {
        let [of_a, of_b] = [a, b].map(|one| one.functions.get(name).copied());
        if !is_same_source && (of_a.is_none() || of_b.is_none()) {
            return None;
        }
        let [of_a, of_b] = [of_a, of_b].map(|count| count.unwrap_or(0) as f64 + INSTRUCTIONS_FLOOR);
        let log = (of_a / of_b).log2();
        (log.abs() >= 1.0).then_some((name, log))
    })
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
