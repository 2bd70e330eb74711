//! An explanation: mechanisms with their evidence. Mechanisms that act in the direction of the difference come first,
//! largest share first. Mechanisms that act against it follow.

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

/// A mechanism with less than this share of all effects is not listed, but added to [`Explanation::minor`].
const MINOR_SHARE: f64 = 0.02;
/// Minimum share that the first mechanism must have of two differences to count as an explanation: of the difference of
/// the traced time, and of that of the metric that differs significantly.
const ENOUGH_SHARE: f64 = 0.1;

/// Name of the metric for the total time of all attempts, the operations that a scenario times one by one.
const ATTEMPT_TIME: &str = "attempt-time";

/// Explanation of why the times of two sides differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Whether and how far the difference is explained.
    pub answer: Answer,
    /// The metric that is explained: a time that differs significantly in the timed trials and makes up at least a
    /// tenth of `time`; `None` if there is none.
    pub claim: Option<Claim>,
    /// Other metrics that differ significantly in the timed trials.
    pub changed: Vec<Claim>,
    /// Data on which the explanation is based.
    pub basis: Basis,
    /// The explained time in nanoseconds, for the baseline and for the other side.
    pub time: [f64; 2],
    /// Mean time of the timed trials from the scenario's start to its end, in nanoseconds, for both sides. If attempts
    /// (operations timed one by one) are explained, mean over the trials of the total time of their attempts.
    pub elapsed: [f64; 2],
    /// Number of timed trials over which counters are averaged, for both sides.
    pub trials: [usize; 2],
    /// Time of both sides by part, in nanoseconds; empty without observed passes.
    pub parts: BTreeMap<Part, [f64; 2]>,
    /// Mechanisms with a significant effect. Those in the direction of the difference come first, then those against
    /// it; each group is sorted by size, largest effect first.
    pub findings: Vec<MechanismShare>,
    /// Sum of effects that are too small to list or whose interval includes zero, in nanoseconds. If all other effects
    /// work against the difference, they are included too.
    pub minor: f64,
    /// Difference without evidence in any counter, in nanoseconds.
    pub unexplained: f64,
    /// Without observed passes, mechanisms whose counters changed, but to which no time could be attributed. If the
    /// difference in time is not explained, also the mechanism of another metric that differs significantly.
    pub leads: Vec<Lead>,
}

/// Whether and how far a difference is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The results of both sides are bit-identical.
    Identical,
    /// No time that makes up at least a tenth of the whole differs significantly between the timed trials, so there is
    /// nothing to explain.
    NotSure,
    /// The explained time does not differ in the direction of the claim: in observed passes, it may differ in the
    /// opposite direction from the timed trials.
    Contrary,
    /// The findings explain the difference in time.
    Explained,
    /// No finding has both a significant sign and at least a tenth of the difference.
    NotFound,
}

/// Data on which an explanation is based.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Basis {
    /// Traces of observed passes; both sides have the same number of passes.
    Traced {
        /// Seeds of the passes; empty if the sides have no seed in common.
        seeds: Vec<u64>,
        /// IDs of the passes' records for both sides. Records at the same index are compared with each other.
        records: [Vec<String>; 2],
        /// True if the explained time is that of the attempts, the operations that the scenario times one by one; false
        /// if it is that of all processes.
        attempts: bool,
    },
    /// Only counters and processor times, because at least one side has no observed pass.
    Counters,
}

/// Effect of a mechanism on the time, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MechanismShare {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Time that the mechanism adds on the other side compared with the baseline, in nanoseconds; negative if it saves
    /// time. It is the mean over the pairs of observed passes. Without observed passes, it is computed from the means
    /// over the timed trials.
    pub effect: f64,
    /// Confidence interval of `effect` at 95 % (Student's t), in nanoseconds; it never contains zero.
    pub interval: [f64; 2],
    /// The effect in each pair, in nanoseconds, in the order of the pairs.
    pub each: Vec<f64>,
    /// Share of the whole difference. `None` if effects against the difference exceed 2 % of it, because shares of the
    /// whole would have no meaning then.
    pub share: Option<f64>,
    /// Evidence for the mechanism; never empty. Numbers that changed against the effect are left out, except the number
    /// and length of sleeps.
    pub evidence: Vec<Evidence>,
}

/// A mechanism whose counters changed, but without an attributed time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lead {
    /// The metric that differs significantly because of this mechanism; `None` if the lead belongs to no such metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The mechanism whose counters changed.
    pub mechanism: Mechanism,
    /// The counters, metrics and settings that changed.
    pub evidence: Vec<Evidence>,
}

impl Explanation {
    /// Returns the explained difference, B minus A, in nanoseconds.
    pub fn difference(&self) -> f64 {
        self.time[1] - self.time[0]
    }

    /// True if the explained difference is more than twice, or less than half, the claimed difference.
    pub fn is_another_time(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| {
            let ratio = self.difference() / claim.difference();
            !(0.5..=2.0).contains(&ratio)
        })
    }

    /// Returns the explanation for sides with identical records.
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

    /// Explains why the time of `b` differs from that of `a`, if a time differs significantly between the timed trials.
    /// Every pair of observed passes is attributed separately. Effects whose interval over all pairs excludes zero
    /// become findings.
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
            // The observed time cannot explain the claim. If the claim is not primary, a primary count may still have a
            // mechanism.
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
        // If all findings work against the difference, they do not explain it.
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
            // The timed trials may show a significant difference that the smaller number of observed passes does not
            // show.
            if !all.leads.iter().any(|lead| lead.of.is_some()) {
                all.leads.extend(of_count(claims, [of_a, of_b]));
            }
        }
        all
    }

    /// Turns effects into findings, those in the direction of the difference first, then by size. Confidence intervals
    /// are computed from `each`, the effects in each pair. Effects that are small or unsure go to `minor`, those
    /// without evidence to `unexplained`.
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
                    self.findings.push(MechanismShare {
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
        // If effects work against each other, shares of the whole have no meaning.
        let against = effects.by.values().chain([&self.unexplained]);
        let opposed: f64 = against.copied().filter(|effect| effect * whole < 0.0).sum();
        if opposed.abs() > MINOR_SHARE * whole.abs() {
            for finding in &mut self.findings {
                finding.share = None;
            }
        }
        // Effects in the direction of the difference come first, because others do not explain it; then larger ones.
        // Equal effects keep the order of the mechanisms, so that the same numbers give the same text.
        let key = |finding: &MechanismShare| (finding.effect * whole <= 0.0, -finding.effect.abs());
        self.findings.sort_by(|x, y| {
            let ((x_against, x_size), (y_against, y_size)) = (key(x), key(y));
            x_against.cmp(&y_against).then(x_size.total_cmp(&y_size))
        });
    }

    /// Adds leads for mechanisms whose counters changed but that are not among the findings.
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

/// Suffixes of the names of metrics that count pages needed again.
const PAGES_BACK: [&str; 4] = ["refaults", "major-faults", "swapped-in", "pages-read"];
/// Name of the metric for the share of allocation attempts that got their block.
const SUCCESS: &str = "success";

/// Prefix of the names of metrics for the time to read a mapping back from swap.
const READ_BACK: &str = "swap-in";

/// True if a metric is the time to read pages back, and the contiguity of pages on the device changed significantly in
/// the matching direction.
fn is_laid_out(claim: &Claim, claims: &[Claim]) -> bool {
    let goes_along = |other: &Claim| other.difference() * claim.difference() < 0.0;
    let mut layout = claims.iter().filter(|other| other.metric == CONTIGUITY);
    claim.metric.starts_with(READ_BACK) && layout.any(goes_along)
}

/// Returns the mechanism for a metric that is not the time of a whole trial, and the expected direction of its counters
/// relative to the metric. The direction 0 means any direction. For example, less compaction and unsuccessful
/// compaction both lead to fewer blocks.
fn behind(claim: &Claim, claims: &[Claim], sides: [SideView<'_>; 2]) -> Option<(Mechanism, f64)> {
    let counts_pages = PAGES_BACK.iter().any(|end| claim.metric.ends_with(end));
    match claim.unit {
        _ if is_laid_out(claim, claims) => Some((Mechanism::SwapLayout, claim.difference())),
        Unit::Count | Unit::Pages if counts_pages => Some((demand(sides), claim.difference())),
        Unit::Share if claim.metric == SUCCESS => Some((Mechanism::Compaction, 0.0)),
        _ => None,
    }
}

/// Returns a lead for one of these metrics if it differs significantly: a count of pages needed again, the share of
/// attempts that got a block, or the time to read a mapping back from swap. Used if the difference in time is not
/// explained.
fn of_count(claims: &[Claim], sides: [SideView<'_>; 2]) -> Option<Lead> {
    let mut counts: Vec<&Claim> = claims.iter().collect();
    counts.sort_by_key(|claim| !claim.primary);
    let found = |claim: &&Claim| Some((claim.metric.clone(), behind(claim, claims, sides)?));
    let (metric, (mechanism, way)) = counts.iter().find_map(found)?;
    let [a, b] = sides;
    let evidence = evidence(mechanism, way, a, b);
    // A difference in a setting alone is not enough evidence.
    let is_seen = evidence.iter().any(|piece| piece.source != Source::Setting);
    is_seen.then_some(Lead {
        of: Some(metric),
        mechanism,
        evidence,
    })
}

/// Returns the confidence interval of an effect over pairs; `None` if the interval contains zero, or if it has another
/// sign than the effect.
fn sure(effect: f64, of_pairs: &[f64]) -> Option<[f64; 2]> {
    let interval = student::interval(of_pairs).ok()?;
    let leaves_out = |end: f64| end * effect > 0.0;
    (leaves_out(interval.low) && leaves_out(interval.high)).then_some([interval.low, interval.high])
}

/// Describes the pairs of observed passes on which an explanation is based.
fn traced(a: &[ObservedPass], b: &[ObservedPass], attempts: bool) -> Basis {
    let pairs = || a.iter().zip(b);
    Basis::Traced {
        // If the sides have no seed in common, passes with different seeds are paired.
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
