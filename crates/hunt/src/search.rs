//! The search: which candidates to try next, given the outcomes of those tried so far. It runs no trials.
//!
//! Candidates come in generations of fixed size. Some are drawn at random; the others are made by changing or crossing
//! earlier candidates, the parents. Parents are chosen by score, from the map of elites (the best candidate of each
//! cell in each region), or because they showed features that few others had. All random numbers come from streams
//! named after the generation, so a hunt depends only on its seed and on outcomes, and not on how many trials run at
//! the same time.

use std::collections::BTreeMap;

use pagetide_reference::Rng;

use crate::behaviour::{Feature, MapCell};
use crate::forecast::Forecast;
use crate::goal::Outcome;
use crate::space::Space;

/// Number of candidates of a generation.
pub const GENERATION: usize = 12;
/// Number of candidates of a generation that are drawn at random, from the second generation on.
const FRESH: usize = 6;
/// Number of these that are drawn in the region with the fewest candidates.
const SPREAD: usize = 3;
/// Number of proposals from which one candidate is chosen.
const PROPOSALS: usize = 16;
/// Number of candidates drawn at random, of which the best becomes a parent.
const TOURNAMENT: u64 = 5;
/// Maximum number of attempts to find a candidate that was not tried before.
const ATTEMPTS: usize = 20;

/// How candidates are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guidance {
    /// By the outcomes of earlier candidates.
    #[default]
    Guided,
    /// All at random, for comparison.
    Random,
}

/// A candidate that was tried, with its outcome.
#[derive(Clone, Debug)]
struct Known<P> {
    point: P,
    score: f64,
    features: Vec<Feature>,
    is_usable: bool,
}

/// State of a search.
#[derive(Clone, Debug)]
pub struct Search<P> {
    seed: u64,
    guidance: Guidance,
    generation: u64,
    known: Vec<Known<P>>,
    forecast: Forecast,
    /// Number of candidates with each feature.
    counts: BTreeMap<Feature, u32>,
    /// Number of candidates in each region of the space.
    regions: BTreeMap<String, u32>,
    /// Index of the best candidate in each region of the space and cell of the map.
    elites: BTreeMap<(String, MapCell), usize>,
}

impl<P: Clone + PartialEq> Search<P> {
    /// Creates a search that has tried nothing.
    pub fn new(seed: u64, guidance: Guidance) -> Self {
        Self {
            seed,
            guidance,
            generation: 0,
            known: Vec::new(),
            forecast: Forecast::default(),
            counts: BTreeMap::new(),
            regions: BTreeMap::new(),
            elites: BTreeMap::new(),
        }
    }

    /// Returns the candidates of the next generation, [`GENERATION`] of them.
    pub fn next<S: Space<Point = P>>(&mut self, space: &S) -> Vec<P> {
        let mut all: Vec<P> = Vec::with_capacity(GENERATION);
        if self.generation == 0 && self.guidance == Guidance::Guided {
            all = space.first(&mut Rng::stream(self.seed, "first candidates"));
            all.truncate(GENERATION);
        }
        for place in all.len()..GENERATION {
            let label = format!("generation {} candidate {place}", self.generation);
            let mut rng = Rng::stream(self.seed, &label);
            let mut point = self.one(space, place, &all, &mut rng);
            for _ in 0..ATTEMPTS {
                let is_new = !all.contains(&point) && self.known.iter().all(|k| k.point != point);
                if is_new {
                    break;
                }
                point = space.mutated(&point, &mut rng);
            }
            all.push(point);
        }
        self.generation += 1;
        all
    }

    /// Draws several proposals for one position in a generation, and returns the one with the highest forecast score.
    /// In the first [`SPREAD`] positions, considers only the proposals whose region has the fewest candidates; those of
    /// this generation, in `others`, count too. Without guidance, returns a random candidate.
    fn one<S: Space<Point = P>>(&self, space: &S, place: usize, others: &[P], rng: &mut Rng) -> P {
        if self.guidance == Guidance::Random {
            return space.random(rng);
        }
        let is_fresh = place < FRESH;
        let tried = |point: &P| {
            if place >= SPREAD {
                return 0;
            }
            let region = space.region(point);
            let others = others.iter().filter(|other| space.region(other) == region);
            self.regions.get(&region).copied().unwrap_or(0) as usize + others.count()
        };
        let mut best: Option<(usize, f64, P)> = None;
        for _ in 0..PROPOSALS {
            let point = if is_fresh {
                space.random(rng)
            } else {
                self.child(space, rng)
            };
            let tried = tried(&point);
            let promise = self.forecast.promise(&space.traits(&point));
            let is_better = best.as_ref().is_none_or(|(least, most, _)| {
                tried < *least || (tried == *least && promise > *most)
            });
            if is_better {
                best = Some((tried, promise, point));
            }
        }
        best.map_or_else(|| space.random(rng), |(_, _, point)| point)
    }

    /// Returns a candidate made by changing a parent or crossing two; a random one if there is no parent.
    fn child<S: Space<Point = P>>(&self, space: &S, rng: &mut Rng) -> P {
        let Some(parent) = self.parent(rng) else {
            return space.random(rng);
        };
        let mut point = match self.parent(rng).filter(|_| rng.below(4) == 0) {
            Some(other) => space.crossed(&parent.point, &other.point, rng),
            None => space.mutated(&parent.point, rng),
        };
        // Half of the candidates get further changes, because some scores are not improved by any single change.
        while rng.below(2) == 0 {
            point = space.mutated(&point, rng);
        }
        point
    }

    /// Returns a candidate to change; `None` if none is usable.
    fn parent(&self, rng: &mut Rng) -> Option<&Known<P>> {
        let usable: Vec<&Known<P>> = self.known.iter().filter(|known| known.is_usable).collect();
        let way = rng.below(10);
        if usable.is_empty() {
            return None;
        }
        let best_of = |by: &dyn Fn(&Known<P>) -> f64, rng: &mut Rng| {
            let mut best: Option<&Known<P>> = None;
            for _ in 0..TOURNAMENT {
                let index = usize::try_from(rng.below(usable.len() as u64)).unwrap_or(0);
                let one = usable[index];
                if best.is_none_or(|best| by(one) > by(best)) {
                    best = Some(one);
                }
            }
            best
        };
        match way {
            0..5 => best_of(&|known| known.score, rng),
            5..8 => {
                let elites: Vec<usize> = self.elites.values().copied().collect();
                let index = rng.below(elites.len() as u64);
                let index = elites.get(usize::try_from(index).unwrap_or(0))?;
                self.known.get(*index)
            }
            _ => best_of(&|known| self.rarity(known), rng),
        }
    }

    /// Returns the sum over the candidate's features of their weight divided by the number of candidates with that
    /// feature.
    fn rarity(&self, known: &Known<P>) -> f64 {
        let count = |feature| self.counts.get(feature).copied().unwrap_or(1);
        let each = known.features.iter();
        each.map(|feature| feature.weight() / f64::from(count(feature).max(1)))
            .sum()
    }

    /// Adds the outcome of a candidate. `score` replaces the score of the outcome, which is that of a single seed.
    pub fn learn<S: Space<Point = P>>(
        &mut self,
        space: &S,
        point: P,
        outcome: &Outcome,
        score: f64,
    ) {
        let behaviour = &outcome.behaviour;
        let is_usable = outcome.unusable.is_none();
        for feature in &behaviour.features {
            *self.counts.entry(feature.clone()).or_default() += 1;
        }
        *self.regions.entry(space.region(&point)).or_default() += 1;
        self.forecast.learn(&space.traits(&point), score);
        self.known.push(Known {
            point,
            score,
            features: behaviour.features.clone(),
            is_usable,
        });
        let index = self.known.len() - 1;
        if is_usable {
            let place = (space.region(&self.known[index].point), behaviour.place);
            let elite = self.elites.entry(place).or_insert(index);
            if score > self.known[*elite].score {
                *elite = index;
            }
        }
    }

    /// Returns the number of different features seen.
    pub fn features(&self) -> usize {
        self.counts.len()
    }

    /// Returns the number of cells of the map that have a candidate, for each region.
    pub fn places(&self) -> BTreeMap<&str, usize> {
        let mut places = BTreeMap::new();
        for (region, _) in self.elites.keys() {
            *places.entry(region.as_str()).or_default() += 1;
        }
        places
    }
}
