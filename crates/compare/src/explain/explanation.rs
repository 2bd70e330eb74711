//! An explanation: mechanisms, the one that accounts for most of the difference first and those that work against it last, each
//! with its evidence.

use std::collections::BTreeMap;

use pagetide_probe::meaning::Part;
use pagetide_quantity::Unit;
use pagetide_verdict::student;
use serde::Serialize;

use super::account::{Account, CONTIGUITY, ObservedPass, PassAccount, SideView};
use super::claims::{Claim, explained};
use super::effects::{Effects, demand, of_counters, of_traces};
use super::evidence::{Evidence, Source, evidence};
use super::mechanism::Mechanism;

/// A mechanism that accounts for less than this share of all effects is left to the rest.
const MINOR_SHARE: f64 = 0.02;
/// The first mechanism must account for at least this share of the difference, of the traced time and of the metric that surely
/// differs, to count as an explanation.
const ENOUGH_SHARE: f64 = 0.1;

/// Metric that holds the time of all attempts.
const ATTEMPT_TIME: &str = "attempt-time";

/// Why two sides differ in time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// What can be said at all.
    pub answer: Answer,
    /// The time that surely differs in the timed trials, which the findings are about.
    pub claim: Option<Claim>,
    /// What else surely differs in the timed trials.
    pub changed: Vec<Claim>,
    /// What it rests on.
    pub basis: Basis,
    /// Time that is explained, in nanoseconds: of the baseline and of the other side.
    pub time: [f64; 2],
    /// Mean time of the timed trials from the scenario's start to its end, or of all its attempts where they are what is
    /// explained, in nanoseconds.
    pub elapsed: [f64; 2],
    /// Timed trials that the counters are means of.
    pub trials: [usize; 2],
    /// Where the time went, in nanoseconds; empty without observed passes.
    pub parts: BTreeMap<Part, [f64; 2]>,
    /// Mechanisms: those that go the way of the difference first, among them the one with the largest effect.
    pub findings: Vec<Finding>,
    /// Effects too small to name or not sure in their sign, together, in nanoseconds.
    pub minor: f64,
    /// What no counter speaks for, in nanoseconds.
    pub unexplained: f64,
    /// Counters that changed, where no time could be attributed to them, and what accounts for a count where no time surely differs.
    pub leads: Vec<Lead>,
}

/// What an explanation can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The records are equal to the bit.
    Identical,
    /// The timed trials show no sure difference in a time, so there is none to explain.
    NotSure,
    /// The observed passes differ the other way than the timed trials surely do.
    Contrary,
    /// The findings say why.
    Explained,
    /// Nothing found is sure in its sign and accounts for a tenth of it.
    NotFound,
}

/// What an explanation rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Basis {
    /// Traces of observed passes, as many of each side, by the identities of their records.
    Traced {
        /// Their seeds; none where the sides have no seed in common.
        seeds: Vec<u64>,
        /// The records, each in the place of that which it is set against on the other side.
        records: [Vec<String>; 2],
        /// Whether the time is that within the attempts which the scenario times, not that of its processes.
        attempts: bool,
    },
    /// Counters and processor times alone: no pass was observed.
    Counters,
}

/// A mechanism's share of the difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Which.
    pub mechanism: Mechanism,
    /// By how much it makes the other side slower than the baseline, in nanoseconds; negative where faster. The mean over the
    /// pairs of observed passes, or of timed trials where none was observed.
    pub effect: f64,
    /// The interval of 95 % around that mean, by Student; it leaves out zero.
    pub interval: [f64; 2],
    /// The effect in each pair, in their order.
    pub each: Vec<f64>,
    /// Of the whole difference; `None` where others work against it, so that it is no part of the whole.
    pub share: Option<f64>,
    /// What speaks for it; never empty, and nothing that moved against it.
    pub evidence: Vec<Evidence>,
}

/// A mechanism whose counters changed, without a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lead {
    /// The metric that surely changed and that it accounts for; `None` where it only stands beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Which.
    pub mechanism: Mechanism,
    /// What changed.
    pub evidence: Vec<Evidence>,
}

impl Explanation {
    /// The difference that is explained, B minus A, in nanoseconds.
    pub fn difference(&self) -> f64 {
        self.time[1] - self.time[0]
    }

    /// Whether what is explained is not of the size of the metric that surely differs: more than twice or less than half.
    pub fn is_another_time(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| {
            let ratio = self.difference() / claim.difference();
            !(0.5..=2.0).contains(&ratio)
        })
    }

    /// What can be said of records that are equal to the bit.
    pub fn identical(a: &Account, b: &Account) -> Self {
        Self::between(a.seen(None), b.seen(None), Answer::Identical)
    }

    fn between(a: SideView<'_>, b: SideView<'_>, answer: Answer) -> Self {
        let (basis, time, parts) = match (a.observed, b.observed) {
            (Some(x), Some(y)) => (
                traced(&a.passes, &b.passes, x.attempts && y.attempts),
                [x.active(), y.active()],
                Part::ALL
                    .into_iter()
                    .map(|part| (part, [x.time(part), y.time(part)]))
                    .collect(),
            ),
            _ => (Basis::Counters, [a.elapsed, b.elapsed], BTreeMap::new()),
        };
        let elapsed = match &basis {
            Basis::Traced { attempts: true, .. } => [a, b].map(|side| {
                let time = side.levels.get(ATTEMPT_TIME).copied();
                time.unwrap_or(side.elapsed)
            }),
            _ => [a.elapsed, b.elapsed],
        };
        Self {
            answer,
            claim: None,
            changed: Vec::new(),
            basis,
            time,
            elapsed,
            trials: [a.trials, b.trials],
            parts,
            findings: Vec::new(),
            minor: 0.0,
            unexplained: 0.0,
            leads: Vec::new(),
        }
    }

    /// Says why b's time differs from a's, where the timed trials say surely that it does. Every pair of observed passes is
    /// explained for itself; what is sure in its sign over all of them is told.
    pub fn of(a: &Account, b: &Account, claims: &[Claim]) -> Self {
        let pairs = a.passes.len().min(b.passes.len());
        let means = [a, b].map(|side| {
            PassAccount::mean(side.passes.iter().take(pairs).map(|pass| &pass.observed))
        });
        let [of_a, of_b] =
            [(a, &means[0]), (b, &means[1])].map(|(side, mean)| side.seen(mean.as_ref()));
        let mut all = Self::between(of_a, of_b, Answer::NotSure);
        all.claim = explained(claims, all.time).cloned();
        all.changed = claims
            .iter()
            .filter(|claim| Some(*claim) != all.claim.as_ref())
            .cloned()
            .collect();
        let Some(claim) = &all.claim else {
            all.leads.extend(of_count(claims, [of_a, of_b]));
            return all;
        };
        let whole = all.difference();
        let claim_difference = claim.difference();
        if whole * claim_difference <= 0.0 {
            all.answer = Answer::Contrary;
            all.unexplained = whole;
            // The time explains nothing, but what decides may be no time.
            if !claim.primary {
                all.leads.extend(of_count(claims, [of_a, of_b]));
            }
            return all;
        }
        let each: Vec<Effects> = a
            .passes
            .iter()
            .zip(&b.passes)
            .filter_map(|(x, y)| of_traces(a.seen(Some(&x.observed)), b.seen(Some(&y.observed))))
            .collect();
        if each.is_empty() {
            let each: Vec<Effects> = a
                .singles
                .iter()
                .zip(&b.singles)
                .map(|(x, y)| of_counters(x, y))
                .collect();
            all.rank([of_a, of_b], &of_counters(a, b), &each);
            all.lead([of_a, of_b]);
        } else {
            all.rank([of_a, of_b], &Effects::mean(&each), &each);
        }
        // Lines that all go the other way say what it cost, and not why it came about.
        if all
            .findings
            .iter()
            .all(|finding| finding.effect * whole <= 0.0)
        {
            let against = all.findings.drain(..);
            all.minor += against.map(|finding| finding.effect).sum::<f64>();
        }
        let needed = ENOUGH_SHARE * whole.abs().max(claim_difference.abs());
        let first = all.findings.first();
        if first.is_some_and(|first| first.effect.abs() >= needed) {
            all.answer = Answer::Explained;
        } else {
            all.answer = Answer::NotFound;
            // The timed trials may tell what the fewer observed ones are not sure of.
            if !all.leads.iter().any(|lead| lead.of.is_some()) {
                all.leads.extend(of_count(claims, [of_a, of_b]));
            }
        }
        all
    }

    /// Ranks effects; `each` is what their intervals are made of.
    fn rank(&mut self, [a, b]: [SideView<'_>; 2], effects: &Effects, each: &[Effects]) {
        let whole = self.difference();
        let all: f64 =
            effects.by.values().map(|effect| effect.abs()).sum::<f64>() + effects.unexplained.abs();
        self.unexplained = effects.unexplained;
        for (&mechanism, &effect) in effects.by.iter().filter(|(_, effect)| **effect != 0.0) {
            let of_pair = |pair: &Effects| pair.by.get(&mechanism).copied().unwrap_or(0.0);
            let of_pairs: Vec<f64> = each.iter().map(of_pair).collect();
            let evidence = evidence(mechanism, effect, a, b);
            if evidence.is_empty() {
                self.unexplained += effect;
                continue;
            }
            match sure(effect, &of_pairs) {
                Some(interval) if effect.abs() >= MINOR_SHARE * all => {
                    self.findings.push(Finding {
                        mechanism,
                        effect,
                        interval,
                        each: of_pairs,
                        share: Some(effect / whole),
                        evidence,
                    });
                }
                _ => self.minor += effect,
            }
        }
        // Beside effects that work against it, no share is a part of the whole.
        let against = effects.by.values().chain([&self.unexplained]);
        let opposed: f64 = against.copied().filter(|effect| effect * whole < 0.0).sum();
        if opposed.abs() > MINOR_SHARE * whole.abs() {
            for finding in &mut self.findings {
                finding.share = None;
            }
        }
        // What goes the way of the difference first, for what works against it is no reason of it; then larger first; of equals
        // the order of the mechanisms, so that the same numbers give the same text.
        let key = |finding: &Finding| (finding.effect * whole <= 0.0, -finding.effect.abs());
        self.findings.sort_by(|x, y| {
            let ((x_against, x_size), (y_against, y_size)) = (key(x), key(y));
            x_against.cmp(&y_against).then(x_size.total_cmp(&y_size))
        });
    }

    /// Adds what changed beside the findings.
    fn lead(&mut self, [a, b]: [SideView<'_>; 2]) {
        for mechanism in Mechanism::ALL {
            if self
                .findings
                .iter()
                .any(|finding| finding.mechanism == mechanism)
            {
                continue;
            }
            let evidence = evidence(mechanism, 0.0, a, b);
            if !evidence.is_empty() {
                self.leads.push(Lead {
                    of: None,
                    mechanism,
                    evidence,
                });
            }
        }
    }
}

/// How names end of metrics that count pages which were needed again.
const PAGES_BACK: [&str; 4] = ["refaults", "major-faults", "swapped-in", "pages-read"];
/// The share of blocks that were got.
const SUCCESS: &str = "success";

/// How names begin of what reading a mapping back from swap took.
const READ_BACK: &str = "swap-in";

/// Whether pages surely lie otherwise on the device, and what reading them back took went with it.
fn is_laid_out(claim: &Claim, claims: &[Claim]) -> bool {
    let goes_along = |other: &Claim| other.difference() * claim.difference() < 0.0;
    let mut layout = claims.iter().filter(|other| other.metric == CONTIGUITY);
    claim.metric.starts_with(READ_BACK) && layout.any(goes_along)
}

/// What accounts for a metric that is not of a whole trial's time, and which way its counters go with it (0: either way, for
/// blocks are missed by compacting less, and by compacting in vain).
fn behind(claim: &Claim, claims: &[Claim], sides: [SideView<'_>; 2]) -> Option<(Mechanism, f64)> {
    let counts_pages = PAGES_BACK.iter().any(|end| claim.metric.ends_with(end));
    match claim.unit {
        _ if is_laid_out(claim, claims) => Some((Mechanism::SwapLayout, claim.difference())),
        Unit::Count | Unit::Pages if counts_pages => Some((demand(sides), claim.difference())),
        Unit::Share if claim.metric == SUCCESS => Some((Mechanism::Compaction, 0.0)),
        _ => None,
    }
}

/// Where no whole time surely differs but a count of pages that were needed again does, the share of blocks that were got, or
/// what reading a mapping back took: whose doing that is, with what changed along.
fn of_count(claims: &[Claim], sides: [SideView<'_>; 2]) -> Option<Lead> {
    let mut counts: Vec<&Claim> = claims.iter().collect();
    counts.sort_by_key(|claim| !claim.primary);
    let found = |claim: &&Claim| Some((claim.metric.clone(), behind(claim, claims, sides)?));
    let (metric, (mechanism, way)) = counts.iter().find_map(found)?;
    let [a, b] = sides;
    let evidence = evidence(mechanism, way, a, b);
    // A setting alone shows nothing.
    let is_seen = evidence.iter().any(|piece| piece.source != Source::Setting);
    is_seen.then_some(Lead {
        of: Some(metric),
        mechanism,
        evidence,
    })
}

/// The interval of an effect over pairs; `None` where it does not leave out zero on the side of the effect.
fn sure(effect: f64, of_pairs: &[f64]) -> Option<[f64; 2]> {
    let interval = student::interval(of_pairs).ok()?;
    let leaves_out = |end: f64| end * effect > 0.0;
    (leaves_out(interval.low) && leaves_out(interval.high)).then_some([interval.low, interval.high])
}

/// The basis of passes that are set against each other, place by place.
fn traced(a: &[ObservedPass], b: &[ObservedPass], attempts: bool) -> Basis {
    let pairs = || a.iter().zip(b);
    Basis::Traced {
        // Passes of different seeds are set against each other only where no seed is common.
        seeds: pairs()
            .filter(|(x, y)| x.seed == y.seed)
            .map(|(x, _)| x.seed)
            .collect(),
        records: [
            pairs().map(|(x, _)| x.record.clone()).collect(),
            pairs().map(|(_, y)| y.record.clone()).collect(),
        ],
        attempts,
    }
}
