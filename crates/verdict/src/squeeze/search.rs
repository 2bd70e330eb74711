//! Chooses the next runs of a search for the smallest sufficient size.

use std::collections::BTreeMap;

use super::{Answer, Design, Fit, Outcome, Point, answer};

/// The next runs of a search: one run for each of these seeds, all at the same size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The size to run with: amount of the resource.
    pub size: u64,
    /// Indices of the seeds, from 0.
    pub seeds: Vec<u32>,
}

/// A search for the smallest sufficient size, in progress.
#[derive(Clone, Debug)]
pub struct Search {
    design: Design,
    hint: Option<u64>,
    runs: BTreeMap<(u64, u32), Outcome>,
}

impl Search {
    /// Starts a search without any runs.
    pub fn new(design: Design) -> Self {
        Self {
            design,
            hint: None,
            runs: BTreeMap::new(),
        }
    }

    /// Returns the parameters of the search.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Sets the first size to try after the amount `plenty`, such as the peak memory use.
    pub fn hint(&mut self, size: u64) {
        self.hint = Some(size);
    }

    /// Adds the outcome of a run with this size and seed.
    pub fn add(&mut self, size: u64, seed: u32, outcome: Outcome) {
        self.runs.insert((size, seed), outcome);
    }

    /// Returns the number of runs so far.
    pub fn made(&self) -> u32 {
        u32::try_from(self.runs.len()).unwrap_or(u32::MAX)
    }

    /// Returns the results at the sizes tried so far, in ascending order of size.
    pub fn curve(&self) -> Vec<Point> {
        let seeds = 0..self.design.seeds;
        let plenty: Vec<Option<f64>> = seeds
            .map(|seed| match self.runs.get(&(self.design.plenty, seed)) {
                Some(Outcome::Cost(cost)) => Some(*cost),
                _ => None,
            })
            .collect();
        let all: Vec<(u64, u32, &Outcome)> = self
            .runs
            .iter()
            .map(|((size, seed), outcome)| (*size, *seed, outcome))
            .collect();
        all.chunk_by(|a, b| a.0 == b.0)
            .map(|of_size| {
                let outcomes: Vec<(u32, &Outcome)> = of_size
                    .iter()
                    .map(|(_, seed, outcome)| (*seed, *outcome))
                    .collect();
                Point::new(&self.design, of_size[0].0, &outcomes, &plenty)
            })
            .collect()
    }

    /// Returns the answer from the runs so far.
    pub fn answer(&self) -> Answer {
        answer::of(&self.design, &self.curve())
    }

    /// Returns the next runs; `None` if the search is finished.
    pub fn next(&self) -> Option<Step> {
        let curve = self.curve();
        let plenty = curve.iter().find(|point| point.size == self.design.plenty);
        match plenty {
            Some(point) if point.fit == Fit::Died => return None,
            Some(point) if point.seeds >= self.design.seeds => {}
            _ => return self.step(self.design.plenty),
        }
        self.scout(&curve).or_else(|| self.confirm(&curve))
    }

    /// Returns the runs that can follow `step`: those if all its runs are within the allowed slowdown, and those if all
    /// are too slow. Empty for the largest size, whose results decide more than that. A caller with idle processors
    /// runs them at the same time as `step`.
    pub fn ahead(&self, step: &Step) -> Vec<Step> {
        if step.size == self.design.plenty {
            return Vec::new();
        }
        let mut ahead = Vec::new();
        for slowdown in [0.0, 2.0 * self.design.within] {
            let mut search = self.clone();
            for seed in &step.seeds {
                let cost = match self.runs.get(&(self.design.plenty, *seed)) {
                    Some(Outcome::Cost(cost)) => *cost,
                    _ => 1.0,
                };
                let outcome = Outcome::Cost(cost * (1.0 + slowdown));
                search.add(step.size, *seed, outcome);
            }
            ahead.extend(search.next().filter(|next| !ahead.contains(next)));
        }
        ahead
    }

    /// Returns the number of runs left until the limit of the design.
    fn left(&self) -> u32 {
        self.design.runs.saturating_sub(self.made())
    }

    /// Returns the number of runs needed to confirm both ends of the gap between "too small" and "enough".
    fn reserve(&self) -> u32 {
        2 * self.design.seeds.saturating_sub(1)
    }

    /// Runs of this size with seeds that have not run yet, as many as the limit allows; `None` if no such run is left.
    fn step(&self, size: u64) -> Option<Step> {
        let lacks = |seed: &u32| !self.runs.contains_key(&(size, *seed));
        let seeds: Vec<u32> = (0..self.design.seeds)
            .filter(lacks)
            .take(self.left() as usize)
            .collect();
        (!seeds.is_empty()).then_some(Step { size, seeds })
    }

    /// Returns two indices in the curve: that of the smallest size at which, as at all larger sizes, the cost is within
    /// the allowed fraction; and that of the next smaller size, if any.
    fn gap(&self, curve: &[Point]) -> (usize, Option<usize>) {
        let slow = |point: &Point| !point.leans_within(self.design.within);
        match curve.iter().rposition(slow) {
            Some(below) => (below + 1, Some(below)),
            None => (0, None),
        }
    }

    /// Returns the next size to run with the first seed only; `None` when this stage (scouting) is finished.
    fn scout(&self, curve: &[Point]) -> Option<Step> {
        if self.left() <= self.reserve() {
            return None;
        }
        let (enough, below) = self.gap(curve);
        let large = curve.get(enough)?.size;
        let hint = self.hint.map(|hint| self.design.at(hint));
        let size = match (below, hint) {
            (None, Some(hint)) if large == self.design.plenty && hint < large => hint,
            (None, _) => self.design.between(self.design.least, large)?,
            (Some(below), _) => self.design.between(curve[below].size, large)?,
        };
        Some(Step {
            size,
            seeds: vec![0],
        })
    }

    /// Returns the next size to run with all seeds: first sizes from the gap upwards until one is enough, then sizes
    /// below the gap until one is too small. `None` if there is none left.
    fn confirm(&self, curve: &[Point]) -> Option<Step> {
        let (enough, below) = self.gap(curve);
        let above = curve.get(enough..)?;
        let mut last: Option<u64> = below.map(|below| curve[below].size);
        for point in above {
            if !point.is_full {
                return self.step(point.size);
            }
            if point.fit == Fit::Within {
                let open = last.filter(|last| Some(*last) != below.map(|b| curve[b].size));
                if let Some(size) = open.and_then(|open| self.design.between(open, point.size)) {
                    return self.step(size);
                }
                break;
            }
            last = Some(point.size);
        }
        for point in curve[..enough].iter().rev() {
            if !point.is_full {
                return self.step(point.size);
            }
            if matches!(point.fit, Fit::TooSlow | Fit::Died) {
                break;
            }
        }
        None
    }
}
