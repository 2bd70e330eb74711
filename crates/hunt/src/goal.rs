//! Goals of a hunt. Each goal is a number computed from the records of a candidate, and a limit from which on the
//! kernel counts as failing. This file is the only place where these numbers are defined.

use std::fmt;
use std::str::FromStr;

use pagetide_quantity::{Nanos, floor};
use serde::{Deserialize, Serialize};

use crate::behaviour::{Behaviour, distance};
use crate::evidence::Evidence;

/// Value of the goal's number if a trial stood still, or if only the hunted variant or only some seeds ended by a kill.
/// With the default time limit no ratio of times is as large.
const DEATH: f64 = 1000.0;
/// Major faults added to both sides of a ratio, so that few faults do not give a large ratio.
const FAULTS_FLOOR: f64 = 256.0;
/// Virtual time added to both sides of a ratio of times, so that short trials do not give a large ratio.
const TIME_FLOOR: Nanos = Nanos::from_millis(20);
/// The goal `stall` holds if processes run for this virtual time without completing an access.
const STANDSTILL: Nanos = Nanos::from_secs(1);
/// Weight of the kernel's behaviour in a score below 1, from 0 to 1; the rest is the weight of the goal's number.
const GUIDE: f64 = 0.4;

/// A goal of a hunt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The kernel kills although memory could be reclaimed.
    Killed,
    /// Reclaim scans far more pages than it frees, or processes run without completing an access.
    Stall,
    /// Many more pages are read back than with the best possible replacement.
    FarFromOpt,
    /// A memory cgroup reads evicted pages back although its use is below its protection.
    Unfair,
    /// The hunted variant takes more time or more major faults than the variant that it is compared with.
    Regressed,
    /// The random seed alone changes the time by a large factor, or decides whether the kernel kills.
    Unstable,
}

/// Definition of a goal, for help and tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Definition {
    /// Name on the command line.
    pub name: &'static str,
    /// Meaning of the goal's number, as the rest of a sentence that begins with the goal's name.
    pub number: &'static str,
    /// The goal holds if the number is at least this.
    pub limit: f64,
}

impl Goal {
    /// All goals, in the order of the help.
    pub const ALL: [Self; 6] = [
        Self::Killed,
        Self::Stall,
        Self::FarFromOpt,
        Self::Unfair,
        Self::Regressed,
        Self::Unstable,
    ];

    /// Returns the definition of the goal.
    pub const fn definition(self) -> Definition {
        match self {
            Self::Killed => Definition {
                name: "killed",
                number: "memory that could be reclaimed when the kernel killed for lack of memory, as a multiple of what \
                         counts as memory to spare (twice the high watermarks, a sixteenth of a group's limit, at least 1 MiB)",
                limit: 1.0,
            },
            Self::Stall => Definition {
                name: "stall",
                number: "pages that reclaim looked at for each page that it freed, if it looked at four times the memory or \
                         more; or 16 for each second in which processes ran and none completed an access",
                limit: 16.0,
            },
            Self::FarFromOpt => Definition {
                name: "far-from-opt",
                number: "pages read back after they were evicted, for each page that the best possible replacement (OPT) of \
                         the same references in the same memory reads back",
                limit: 4.0,
            },
            Self::Unfair => Definition {
                name: "unfair",
                number: "pages that a group read back although its use was below its protection (memory.low or memory.min), \
                         for each page of the protection",
                limit: 1.0,
            },
            Self::Regressed => Definition {
                name: "regressed",
                number: "virtual time of B divided by that of A, or their major faults or time of all accesses if the times are \
                         alike; 1000 if only B was killed for lack of memory",
                limit: 1.3,
            },
            Self::Unstable => Definition {
                name: "unstable",
                number: "longest virtual time of three seeds divided by the shortest; 1000 if the kernel killed with some \
                         seeds only",
                limit: 2.0,
            },
        }
    }

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        self.definition().name
    }

    /// Returns the number of seeds of one measurement.
    pub const fn seeds(self) -> u64 {
        match self {
            Self::Unstable => 3,
            _ => 1,
        }
    }

    /// True if the goal compares two variants.
    pub const fn needs_two(self) -> bool {
        matches!(self, Self::Regressed)
    }

    /// Computes the outcome of a candidate from its trials; it is unusable if any of them is. `hunted` has the trials
    /// of the hunted variant, one for each seed of a measurement. `other` has the trials of the variant to compare
    /// with, and is empty if there is none.
    pub fn measure(self, hunted: &[Evidence], other: &[Evidence]) -> Outcome {
        let Some(first) = hunted.first() else {
            return Outcome::unusable("no trial ran");
        };
        let all = || hunted.iter().chain(other);
        if let Some(why) = all().find_map(|evidence| evidence.unusable.as_deref()) {
            return Outcome::unusable(why);
        }
        let limit = self.definition().limit;
        let behaviour = Behaviour::of(first, other.first());
        let apart = other.first().map_or(0.0, |other| distance(first, other));
        let executed = first.executed.as_ref();
        let executed = executed.zip(other.first().and_then(|other| other.executed.as_ref()));
        // Where nothing of a patch ran, a difference most likely is chance and leads nowhere.
        let is_missed = executed.is_some_and(|(b, a)| b.missed_patch(a));
        let (value, shown, guide) = match self {
            Self::Regressed => {
                let Some(other) = other.first() else {
                    return Outcome::unusable("there is no second variant to compare with");
                };
                if executed.is_some_and(|(b, a)| b.is_same_code(a)) {
                    (1.0, "nothing of the patch ran".to_owned(), 0.0)
                } else {
                    let (value, shown) = regression(first, other, limit);
                    (value, shown, squashed(apart / 16.0))
                }
            }
            Self::Unstable => {
                let (value, shown) = instability(hunted);
                (value, shown, 0.0)
            }
            _ => {
                let (value, shown) = self.alone(first);
                (value, shown, self.nearness(first))
            }
        };
        let with_other = (!other.is_empty() && self != Self::Regressed).then(|| match self {
            Self::Unstable => instability(other).0,
            _ => self.alone(&other[0]).0,
        });
        let is_alike = with_other.is_some_and(|value| value >= limit);
        let holds = value >= limit && !is_alike;
        let opposite = match (self, with_other) {
            (Self::Regressed, _) => value <= 1.0 / limit,
            (_, Some(with_other)) => with_other >= limit && value < limit,
            (_, None) => false,
        };
        let score = if holds {
            1.0 + squashed(value / limit - 1.0)
        } else if is_missed {
            0.0
        } else {
            // The sum of the parts stays below 1.
            0.99 * ((1.0 - GUIDE) * self.share_of_limit(value) + GUIDE * guide)
        };
        Outcome {
            unusable: None,
            value,
            shown,
            score,
            reach: if is_alike { 0.0 } else { value / limit },
            holds,
            opposite,
            behaviour,
        }
    }

    /// Returns the number of a goal that needs only one trial, and this number as text; 0 for other goals.
    fn alone(self, evidence: &Evidence) -> (f64, String) {
        match self {
            Self::Killed => killed(evidence),
            Self::Stall => stall(evidence),
            Self::FarFromOpt => {
                let metric = |name| evidence.metrics.get(name).copied();
                match (metric("read-back"), metric("opt-read-back")) {
                    (Some(found), Some(best)) => {
                        let floor = evidence.pages() as f64 / 16.0;
                        let value = (found + floor) / (best + floor);
                        (value, format!("{found:.0} pages read back, OPT {best:.0}"))
                    }
                    _ => (0.0, "OPT is not known".to_owned()),
                }
            }
            Self::Unfair => {
                let value = evidence.metrics.get("lost-protection").copied();
                let value = value.unwrap_or(0.0);
                (value, format!("{value:.2} times its protection read back"))
            }
            Self::Regressed | Self::Unstable => (0.0, String::new()),
        }
    }

    /// Returns how close a number comes to the goal's limit, from 0 to 1: on a logarithmic scale from 1 for `Regressed`
    /// and `Unstable`, otherwise divided by the limit.
    fn share_of_limit(self, value: f64) -> f64 {
        let limit = self.definition().limit;
        let share = match self {
            Self::Regressed | Self::Unstable => value.max(1.0).ln() / limit.ln(),
            _ => value / limit,
        };
        share.clamp(0.0, 1.0)
    }

    /// Estimates how close a trial in which the goal does not hold comes to the goal, from 0 to 1. The estimate only
    /// guides the search.
    fn nearness(self, evidence: &Evidence) -> f64 {
        let share = |count: u64| squashed(count as f64 / evidence.pages() as f64);
        match self {
            // Direct reclaim, and reclaim that frees few of the scanned pages, precede a kill. A kill counts by the
            // memory that could still be reclaimed. Otherwise the many workloads that are too large for memory and
            // swap would attract the search.
            Self::Killed => {
                let direct = share(evidence.counter("pgscan_direct"));
                let vain = evidence.scanned().saturating_sub(evidence.reclaimed());
                let left = evidence.death.as_ref();
                let left = left.map_or(0.0, |death| death.left(evidence.memory));
                let vain = share(vain / 4);
                if evidence.death.is_some() {
                    0.3 * vain + 0.7 * left
                } else {
                    0.4 * direct + 0.3 * vain
                }
            }
            Self::Stall => share(evidence.scanned() / 16),
            _ => share(evidence.counter("pgmajfault")),
        }
    }
}

/// Result of a measurement of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Why the candidate could not be measured, as a sentence; `None` if it was measured.
    pub unusable: Option<String>,
    /// The goal's number.
    pub value: f64,
    /// The goal's number and the values that it was computed from, as text.
    pub shown: String,
    /// The value that the search maximises. It is at least 1 if and only if the goal holds.
    pub score: f64,
    /// The goal's number divided by its limit; 0 if the other variant's number reaches the limit.
    pub reach: f64,
    /// True if the goal holds: the number reaches the goal's limit for this variant, and not for the other one.
    pub holds: bool,
    /// True if the goal holds with the two variants exchanged.
    pub opposite: bool,
    /// Behaviour of the kernel in the hunted variant's trial with the first seed, compared with the other variant's if
    /// there is one.
    pub behaviour: Behaviour,
}

impl Outcome {
    /// Creates the outcome of a candidate that cannot be measured.
    pub fn unusable(why: &str) -> Self {
        Self {
            unusable: Some(why.to_owned()),
            ..Self::default()
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|goal| goal.name() == text);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!("give one of {}", names.join(", "))
        })
    }
}

/// Maps a number from 0 to infinity to a number from 0 to below 1.
fn squashed(value: f64) -> f64 {
    let value = value.max(0.0);
    value / (1.0 + value)
}

fn killed(evidence: &Evidence) -> (f64, String) {
    let Some(death) = &evidence.death else {
        return (0.0, "not killed".to_owned());
    };
    let Some(memory) = &death.memory else {
        return (0.0, "killed, without a report of memory".to_owned());
    };
    (
        death.spare,
        format!("killed after {} with {memory}", death.after),
    )
}

fn stall(evidence: &Evidence) -> (f64, String) {
    if let Some(span) = evidence.standstill {
        return (DEATH, format!("no progress for {span}"));
    }
    let still = evidence.metrics.get("longest-stall").copied();
    let still = still.unwrap_or(0.0) / STANDSTILL.0 as f64;
    let (scanned, reclaimed) = (evidence.scanned(), evidence.reclaimed());
    let is_long = still >= 1.0 || (still > 0.0 && scanned < 4 * evidence.pages());
    if is_long {
        let limit = Goal::Stall.definition().limit;
        let span = Nanos(floor(still * STANDSTILL.0 as f64));
        return (
            still * limit,
            format!("no access for {span} while processes ran"),
        );
    }
    if scanned < 4 * evidence.pages() {
        return (0.0, format!("{scanned} pages scanned"));
    }
    let value = scanned as f64 / reclaimed.max(1) as f64;
    let shown = format!("{scanned} pages scanned to reclaim {reclaimed}");
    (value, shown)
}

/// Returns the time of B divided by that of A, and both times as text. If the times differ by a factor below `limit`,
/// returns the same for their major faults, or for the time of all accesses, if these differ more. While one process
/// pauses, slow accesses of another hardly change the time. If A or B was killed or stood still, returns [`DEATH`]
/// (only B), its inverse (only A) or 1 (both).
fn regression(b: &Evidence, a: &Evidence, limit: f64) -> (f64, String) {
    match (&a.death, &b.death) {
        (None, Some(_)) => return (DEATH, "only B was killed".to_owned()),
        (Some(_), None) => return (1.0 / DEATH, "only A was killed".to_owned()),
        (Some(_), Some(_)) => return (1.0, "both were killed".to_owned()),
        (None, None) => {}
    }
    match (a.standstill, b.standstill) {
        (None, Some(_)) => return (DEATH, "only B stood still".to_owned()),
        (Some(_), None) => return (1.0 / DEATH, "only A stood still".to_owned()),
        (Some(_), Some(_)) => return (1.0, "both stood still".to_owned()),
        (None, None) => {}
    }
    let ratio = |[a, b]: [f64; 2], added: f64| (b + added) / (a + added);
    let times = [a, b].map(|one| one.time.0 as f64);
    let time = ratio(times, TIME_FLOOR.0 as f64);
    let shown = format!("time {} → {}", a.time, b.time);
    if time >= limit || time <= 1.0 / limit {
        return (time, shown);
    }
    let faults = [a, b].map(|one| one.counter("pgmajfault") as f64);
    let accesses = [a, b].map(Evidence::access_time);
    let [of_a, of_b] = accesses.map(|time| Nanos(floor(time)));
    let all = [
        (time, shown),
        (
            ratio(faults, FAULTS_FLOOR),
            format!("major faults {} → {}", faults[0], faults[1]),
        ),
        (
            ratio(accesses, TIME_FLOOR.0 as f64),
            format!("accesses {of_a} → {of_b}"),
        ),
    ];
    let size = |ratio: f64| ratio.ln().abs();
    let largest = all.into_iter().reduce(|most, one| {
        if size(one.0) > size(most.0) {
            one
        } else {
            most
        }
    });
    largest.unwrap_or_default()
}

fn instability(all: &[Evidence]) -> (f64, String) {
    let died = all.iter().filter(|one| one.death.is_some()).count();
    if died > 0 && died < all.len() {
        let shown = format!("killed with {died} of {} seeds", all.len());
        return (DEATH, shown);
    }
    if died > 0 {
        return (1.0, "killed with every seed".to_owned());
    }
    let times = all.iter().map(|one| one.time);
    let (Some(least), Some(most)) = (times.clone().min(), times.max()) else {
        return (0.0, String::new());
    };
    let value = (most.0 + TIME_FLOOR.0) as f64 / (least.0 + TIME_FLOOR.0) as f64;
    (value, format!("{least} to {most}"))
}
