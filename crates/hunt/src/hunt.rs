//! The hunt. Generations of candidates are measured. A candidate for which the goal holds is repeated with fresh seeds,
//! unless its region and cell of the map already have a finding. If the goal holds with enough of them, the candidate
//! is made as simple as possible and tried on machines of neighbouring sizes.

use std::collections::BTreeMap;

use pagetide_campaign::RunError;
use serde::Serialize;

use crate::behaviour::MapCell;
use crate::examine::{Budget, Examiner, Meter, Question};
use crate::goal::{Goal, Outcome};
use crate::search::{Guidance, Search};
use crate::shrink::{SIZES, shrink};
use crate::space::Space;

/// Seed with which candidates are first measured.
const FIRST_SEED: u64 = 1;
/// Number of fresh seeds (not used before) with which a candidate is repeated before it can count as found. Fewer are
/// tried once the candidate can no longer count as found.
pub const SEEDS: u64 = 8;
/// Minimum number of the [`SEEDS`] fresh seeds with which the goal must hold.
pub const MUST_HOLD: u64 = 6;
/// First of the fresh seeds with which a candidate is repeated.
const FRESH: u64 = 101;
/// First of the fresh seeds with which the simplest case is repeated. They differ from the seeds with which it was
/// simplified.
const FRESH_CASE: u64 = 301;
/// First of the seeds with which machines of neighbouring sizes are tried.
const FRESH_SIZES: u64 = 401;
/// Number of seeds for each neighbouring size.
const SEEDS_OF_SIZE: u64 = 4;

/// What to hunt for, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The goal that a candidate must reach.
    pub goal: Goal,
    /// Number of trials or time after which the hunt ends.
    pub budget: Budget,
    /// Random seed of the search.
    pub seed: u64,
    /// Maximum number of findings, after which the hunt ends.
    pub most: usize,
    /// How candidates are chosen.
    pub guidance: Guidance,
}

/// Number of seeds tried with a candidate, and with how many of them the goal holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Number of seeds with which the goal holds.
    pub holds: u64,
    /// Number of seeds with which the goal holds with the two variants exchanged; 0 for a single variant.
    pub opposite: u64,
    /// Number of seeds tried.
    pub tried: u64,
}

impl Share {
    /// Counts the outcomes for which the goal holds.
    pub fn of(outcomes: impl Iterator<Item = Outcome>) -> Self {
        let mut share = Self::default();
        outcomes.for_each(|outcome| share.add(&outcome));
        share
    }

    fn add(&mut self, outcome: &Outcome) {
        self.holds += u64::from(outcome.holds);
        self.opposite += u64::from(outcome.opposite);
        self.tried += 1;
    }

    /// True if the candidate counts as found.
    ///
    /// The rule bounds false findings of two variants that do not differ. Suppose that for each seed the goal holds
    /// with probability *p*, and with the variants exchanged with the same probability. Then at least six of eight
    /// seeds hold, and none with the variants exchanged, with a probability of at most 0.8 %, whatever *p* is.
    fn is_found(&self) -> bool {
        self.holds >= MUST_HOLD && self.opposite == 0
    }

    /// Score for the search of a candidate that does not count as found: the share of seeds with which the goal holds,
    /// minus the share with which it holds with the variants exchanged, at least 0. It is less than the score of any
    /// finding. The first seed alone would attract the search to workloads that only chance brings to the goal, and the
    /// first share alone to workloads whose time scatters.
    fn score(&self) -> f64 {
        0.99 * self.holds.saturating_sub(self.opposite) as f64 / self.tried.max(1) as f64
    }

    /// True if the candidate can no longer count as found, whatever the untried seeds show.
    fn is_lost(&self) -> bool {
        self.opposite > 0 || self.tried - self.holds > SEEDS - MUST_HOLD
    }
}

/// A finding: a case for which the goal holds.
#[derive(Clone, Debug, Serialize)]
pub struct Find<P> {
    /// The candidate as first measured, before it was simplified.
    pub met: P,
    /// The simplest case for which the goal holds with enough fresh seeds.
    pub case: P,
    /// Number of trials before the candidate was repeated with fresh seeds, including those that already had a record.
    pub after: u64,
    /// The goal's number for the case, with the first fresh seed with which the goal holds.
    pub value: f64,
    /// The goal's number and the values that it was computed from, as text.
    pub shown: String,
    /// Number of fresh seeds with which the goal holds for the case, out of those tried.
    pub seeds: Share,
    /// First of the fresh seeds; each further seed is the previous one plus 1.
    pub first_seed: u64,
    /// Results on machines of neighbouring sizes: size in percent of the case's machine, and the number of seeds with
    /// which the goal holds. Empty if the budget was used up before.
    pub sizes: Vec<(u64, Share)>,
    /// Number of simplifications that were accepted, including those beyond `case`, which fresh seeds did not confirm.
    pub steps: usize,
    /// True if fresh seeds confirm no further simplification. False if the budget ended before.
    pub is_smallest: bool,
    /// Number of later candidates for which the goal held, in the same region of the space and cell of the map, or
    /// simplified to the same case.
    pub again: u64,
}

/// Summary of the candidates that a hunt tried in one region of the space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Looked {
    /// Number of candidates.
    pub candidates: u64,
    /// Number of candidates that could not be measured.
    pub unusable: u64,
    /// Number of cells of the map of behaviours that were reached.
    pub places: usize,
    /// Largest value of the goal's number in the region.
    pub best: f64,
}

/// Result of a hunt.
#[derive(Clone, Debug, Serialize)]
pub struct Account<P> {
    /// Findings, in the order in which they were made.
    pub found: Vec<Find<P>>,
    /// Number of trials, including those that already had a record.
    pub trials: u64,
    /// Number of candidates of all generations, without simplifications.
    pub candidates: u64,
    /// Number of candidates for which the goal held with the first seed, but not with enough fresh seeds, or at no
    /// neighbouring size.
    pub chance: u64,
    /// Number of different features of the kernel's behaviour that were seen.
    pub features: usize,
    /// What the hunt tried in each region, by the region's name.
    pub regions: BTreeMap<String, Looked>,
    /// The candidate with the highest score, that is, nearest to the goal or furthest beyond it; `None` if none could
    /// be measured.
    pub best: Option<Best<P>>,
    /// Reasons why candidates could not be measured, each with the number of candidates; the most frequent first.
    pub unusable: Vec<(String, u64)>,
    /// True if the hunt was stopped before its end.
    pub is_stopped: bool,
}

/// The candidate with the highest score.
#[derive(Clone, Debug, Serialize)]
pub struct Best<P> {
    /// The candidate.
    pub point: P,
    /// Score of the candidate.
    pub score: f64,
    /// The goal's number and the values that it was computed from, as text.
    pub shown: String,
}

/// Something that happened in a hunt.
#[derive(Clone, Debug)]
pub enum News<'a> {
    /// A generation was measured.
    Generation {
        /// The goal's number of the candidate with the highest score so far, as text; empty if there is none.
        best: &'a str,
        /// Number of findings so far.
        found: usize,
    },
    /// The goal holds for a candidate with the first seed. The candidate is repeated with fresh seeds next.
    Met {
        /// The goal's number as text.
        shown: &'a str,
        /// Description of the candidate.
        label: &'a str,
    },
    /// The goal does not hold with enough fresh seeds.
    Chance(Share),
    /// The goal holds with enough fresh seeds, but neither at 80 % nor at 120 % of the size with half of the seeds.
    OneSize,
    /// The goal holds with enough fresh seeds. The candidate is simplified next.
    Found(Share),
    /// A simpler case was accepted.
    Simpler {
        /// Description of the case.
        label: &'a str,
    },
}

/// Function that receives news of a hunt. The meter has the number of trials and the time left.
pub type Say<'a, P> = dyn FnMut(&Meter<'_, P>, &News<'_>) + 'a;

/// Runs a hunt until its budget is used up, there are enough findings, or it is stopped.
pub fn hunt<S: Space>(
    space: &S,
    plan: &Plan,
    examiner: &mut dyn Examiner<S::Point>,
    say: &mut Say<'_, S::Point>,
) -> Result<Account<S::Point>, RunError> {
    let mut hunt = Hunt {
        space,
        plan,
        meter: Meter::new(examiner, plan.budget),
        search: Search::new(plan.seed, plan.guidance),
        settled: Vec::new(),
        unusable: BTreeMap::new(),
        account: Account {
            found: Vec::new(),
            trials: 0,
            candidates: 0,
            chance: 0,
            features: 0,
            regions: BTreeMap::new(),
            best: None,
            unusable: Vec::new(),
            is_stopped: false,
        },
        say,
    };
    while !hunt.meter.is_over() && hunt.account.found.len() < plan.most {
        if !hunt.generation()? {
            hunt.account.is_stopped = true;
            break;
        }
    }
    Ok(hunt.end())
}

/// Region of the space and cell of the map in which the goal held with enough fresh seeds, and the index of the
/// finding. The index is `None` if the candidate was simplified to a case that was already found.
type Settled = (String, MapCell, Option<usize>);

/// The simplest case found so far for which the goal holds with enough fresh seeds.
struct Simplest<P> {
    case: P,
    /// Fresh seeds with which the goal holds.
    seeds: Share,
    /// Outcome with the first of them.
    outcome: Outcome,
    /// First of the fresh seeds.
    first_seed: u64,
    /// Number of simplifications.
    steps: usize,
    /// True if nothing more can be left out.
    is_smallest: bool,
    /// True if the hunt was stopped meanwhile.
    is_stopped: bool,
}

struct Hunt<'a, 'b, S: Space> {
    space: &'a S,
    plan: &'a Plan,
    meter: Meter<'a, S::Point>,
    search: Search<S::Point>,
    /// Regions and cells in which the goal held with enough fresh seeds. Later candidates with the same region and cell
    /// are not repeated.
    settled: Vec<Settled>,
    unusable: BTreeMap<String, u64>,
    account: Account<S::Point>,
    say: &'a mut Say<'b, S::Point>,
}

impl<S: Space> Hunt<'_, '_, S> {
    /// Measures a generation of candidates. Repeats and simplifies those for which the goal holds. Returns false if
    /// stopped.
    fn generation(&mut self) -> Result<bool, RunError> {
        let mut points = self.search.next(self.space);
        points.truncate(self.meter.room(points.len()));
        let asked: Vec<_> = points
            .iter()
            .map(|point| Question {
                point: point.clone(),
                seed: FIRST_SEED,
            })
            .collect();
        let Some(outcomes) = self.meter.ask(&asked)? else {
            return Ok(false);
        };
        let mut met = Vec::new();
        for (point, outcome) in points.into_iter().zip(outcomes) {
            let place = self.look(&point, &outcome);
            if outcome.holds {
                met.push((point, outcome, place));
            } else {
                self.search
                    .learn(self.space, point, &outcome, outcome.score);
            }
        }
        for (point, outcome, place) in met {
            if self.account.found.len() >= self.plan.most {
                break;
            }
            let score = if self.is_again(&place) {
                0.0
            } else {
                match self.follow(point.clone(), &outcome, place)? {
                    Some(share) if share.is_found() => outcome.score,
                    Some(share) => share.score(),
                    None => return Ok(false),
                }
            };
            self.search.learn(self.space, point, &outcome, score);
        }
        let best = self.account.best.as_ref();
        let best = best.map_or("", |best| &best.shown);
        let found = self.account.found.len();
        (self.say)(&self.meter, &News::Generation { best, found });
        Ok(true)
    }

    /// Adds an outcome to the account. Returns the candidate's region and cell of the map.
    fn look(&mut self, point: &S::Point, outcome: &Outcome) -> (String, MapCell) {
        let region = self.space.region(point);
        self.account.candidates += 1;
        let looked = self.account.regions.entry(region.clone()).or_default();
        looked.candidates += 1;
        looked.best = looked.best.max(outcome.value);
        if let Some(why) = &outcome.unusable {
            looked.unusable += 1;
            *self.unusable.entry(why.clone()).or_default() += 1;
        }
        let best = self.account.best.as_ref().map_or(-1.0, |best| best.score);
        if outcome.unusable.is_none() && outcome.score > best {
            self.account.best = Some(Best {
                point: point.clone(),
                score: outcome.score,
                shown: outcome.shown.clone(),
            });
        }
        (region, outcome.behaviour.place)
    }

    /// True if this region and cell are settled. If they belong to a finding, adds one to the finding's `again`.
    fn is_again(&mut self, place: &(String, MapCell)) -> bool {
        let same = |settled: &&Settled| (&settled.0, settled.1) == (&place.0, place.1);
        let Some((_, _, found)) = self.settled.iter().find(same) else {
            return false;
        };
        if let Some(find) = found.and_then(|index| self.account.found.get_mut(index)) {
            find.again += 1;
        }
        true
    }

    /// Repeats a candidate with fresh seeds, and simplifies it if the goal holds. Returns the share of the candidate's
    /// fresh seeds with which the goal holds, or, if the goal holds at no neighbouring size, the share at the better of
    /// these. Returns `None` if stopped; if it was being simplified then, the simplest case so far is a finding.
    fn follow(
        &mut self,
        point: S::Point,
        outcome: &Outcome,
        (region, place): (String, MapCell),
    ) -> Result<Option<Share>, RunError> {
        let after = self.meter.trials;
        let label = self.space.label(&point);
        let shown = &outcome.shown;
        let label = &label;
        (self.say)(&self.meter, &News::Met { shown, label });
        let Some((share, outcome)) = self.repeat(&point, FRESH)? else {
            return Ok(None);
        };
        let of_point = share;
        if !share.is_found() {
            self.account.chance += 1;
            (self.say)(&self.meter, &News::Chance(share));
            return Ok(Some(of_point));
        }
        let mut sizes_of_point = None;
        if self.plan.goal.needs_two() {
            let Some(sizes) = self.sizes(&point)? else {
                return Ok(None);
            };
            // At one size, even equal kernels can differ, because their memory has different addresses.
            let most = sizes_of_point.insert(sizes).iter().map(|(_, share)| *share);
            let most = most.max_by_key(|share| share.holds);
            if let Some(most) = most.filter(|share| 2 * share.holds < share.tried) {
                self.account.chance += 1;
                (self.say)(&self.meter, &News::OneSize);
                return Ok(Some(most));
            }
        }
        (self.say)(&self.meter, &News::Found(share));
        let simplest = self.simplify(&point, (share, outcome))?;
        let (case, outcome) = (simplest.case, simplest.outcome);
        let sizes = match sizes_of_point.filter(|_| case == point) {
            _ if simplest.is_stopped => None,
            Some(known) => Some(known),
            None if self.meter.is_over() => Some(Vec::new()),
            None => self.sizes(&case)?,
        };
        let share = sizes.is_some().then_some(of_point);
        if let Some(find) = self.account.found.iter_mut().find(|find| find.case == case) {
            find.again += 1;
            self.settled.push((region, place, None));
            return Ok(share);
        }
        self.settled
            .push((region, place, Some(self.account.found.len())));
        let of_case = (self.space.region(&case), outcome.behaviour.place);
        if !self.is_again(&of_case) {
            let index = self.account.found.len();
            self.settled.push((of_case.0, of_case.1, Some(index)));
        }
        self.account.found.push(Find {
            met: point,
            case,
            after,
            value: outcome.value,
            shown: outcome.shown,
            seeds: simplest.seeds,
            first_seed: simplest.first_seed,
            sizes: sizes.unwrap_or_default(),
            steps: simplest.steps,
            is_smallest: simplest.is_smallest,
            again: 0,
        });
        Ok(share)
    }

    /// Makes a case simpler. `seeds` and `outcome` are its results with fresh seeds, with which the goal holds. The
    /// simplest case is repeated with other fresh seeds. If the goal does not hold with enough of them, the case before
    /// it is tried, and so on. The first for which the goal holds is made simpler in other ways.
    fn simplify(
        &mut self,
        point: &S::Point,
        (seeds, outcome): (Share, Outcome),
    ) -> Result<Simplest<S::Point>, RunError> {
        let mut best = Simplest {
            case: point.clone(),
            seeds,
            outcome,
            first_seed: FRESH,
            steps: 0,
            is_smallest: false,
            is_stopped: false,
        };
        let mut tried = Vec::new();
        loop {
            let say = &mut self.say;
            let shrunk = shrink(
                self.space,
                best.case.clone(),
                &mut self.meter,
                &mut tried,
                &mut |meter, label| say(meter, &News::Simpler { label }),
            )?;
            let Some(mut shrunk) = shrunk else {
                best.is_stopped = true;
                return Ok(best);
            };
            best.steps += shrunk.chain.len() - 1;
            let mut is_confirmed = true;
            while shrunk.chain.len() > 1
                && let Some(last) = shrunk.chain.pop()
            {
                let Some((seeds, outcome)) = self.repeat(&last, FRESH_CASE)? else {
                    best.is_stopped = true;
                    return Ok(best);
                };
                if seeds.is_found() {
                    (best.case, best.seeds, best.outcome) = (last, seeds, outcome);
                    best.first_seed = FRESH_CASE;
                    break;
                }
                is_confirmed = false;
            }
            if is_confirmed || self.meter.is_over() {
                best.is_smallest = is_confirmed && shrunk.is_smallest;
                return Ok(best);
            }
        }
    }

    /// Repeats a candidate with fresh seeds, four at a time, until further seeds cannot change the result. Returns the
    /// share of seeds with which the goal holds and the first outcome for which it holds (a default outcome if there is
    /// none), or `None` if stopped.
    fn repeat(
        &mut self,
        point: &S::Point,
        from: u64,
    ) -> Result<Option<(Share, Outcome)>, RunError> {
        let (mut share, mut first) = (Share::default(), Outcome::default());
        for half in [0, SEEDS / 2] {
            let seeds = (from + half)..(from + half + SEEDS / 2);
            let Some(outcomes) = self.ask(point, seeds)? else {
                return Ok(None);
            };
            for outcome in outcomes {
                share.add(&outcome);
                if outcome.holds && !first.holds {
                    first = outcome;
                }
            }
            if share.is_lost() {
                break;
            }
        }
        Ok(Some((share, first)))
    }

    /// Measures a case on machines of neighbouring sizes. Returns `None` if stopped.
    fn sizes(&mut self, case: &S::Point) -> Result<Option<Vec<(u64, Share)>>, RunError> {
        let mut sizes = Vec::new();
        for size in SIZES {
            let Some(point) = self.space.resized(case, size) else {
                continue;
            };
            let seeds = FRESH_SIZES..FRESH_SIZES + SEEDS_OF_SIZE;
            let Some(outcomes) = self.ask(&point, seeds)? else {
                return Ok(None);
            };
            sizes.push((size, Share::of(outcomes.into_iter())));
        }
        Ok(Some(sizes))
    }

    /// Measures one candidate with several seeds; `None` if stopped.
    fn ask(
        &mut self,
        point: &S::Point,
        seeds: std::ops::Range<u64>,
    ) -> Result<Option<Vec<Outcome>>, RunError> {
        let question = |seed| Question {
            point: point.clone(),
            seed,
        };
        let asked: Vec<_> = seeds.map(question).collect();
        self.meter.ask(&asked)
    }

    fn end(mut self) -> Account<S::Point> {
        for (region, places) in self.search.places() {
            if let Some(looked) = self.account.regions.get_mut(region) {
                looked.places = places;
            }
        }
        self.account.features = self.search.features();
        self.account.trials = self.meter.trials;
        self.account.unusable = self.unusable.into_iter().collect();
        self.account
            .unusable
            .sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        self.account
    }
}

impl News<'_> {
    /// Returns a sentence for the user; `None` for news that only update the progress.
    pub fn sentence(&self) -> Option<String> {
        let of = |share: &Share| format!("{} of {} fresh seeds", share.holds, share.tried);
        match self {
            Self::OneSize => Some(
                "not found: on machines of 80 % and of 120 % of the size, the goal holds with fewer than half of the seeds"
                    .to_owned(),
            ),
            Self::Generation { .. } => None,
            Self::Met { shown, label } => Some(format!("met: {shown}: {label}")),
            Self::Chance(share) if share.opposite > 0 => Some(format!(
                "not found: the goal holds with {}, but with {} the other way round",
                of(share),
                share.opposite
            )),
            Self::Chance(share) => {
                Some(format!("not found: the goal holds with only {}", of(share)))
            }
            Self::Found(share) => Some(format!(
                "found: the goal holds with {}; now the case is made simpler",
                of(share)
            )),
            Self::Simpler { label } => Some(format!("simpler: {label}")),
        }
    }
}
