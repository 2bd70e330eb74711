//! Which run comes next.

use std::collections::BTreeMap;

use super::{Answer, Design, Fit, Outcome, Point, answer};

/// Runs to be made: one of each of these seeds, counted from 0, at this size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The size.
    pub size: u64,
    /// The seeds.
    pub seeds: Vec<u32>,
}

/// A search, as far as it has come.
#[derive(Clone, Debug)]
pub struct Search {
    design: Design,
    hint: Option<u64>,
    runs: BTreeMap<(u64, u32), Outcome>,
}

impl Search {
    /// A search that has not begun.
    pub fn new(design: Design) -> Self {
        Self {
            design,
            hint: None,
            runs: BTreeMap::new(),
        }
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The first size to try after plenty, such as the most that was ever in use.
    pub fn hint(&mut self, size: u64) {
        self.hint = Some(size);
    }

    /// Enters what came of a run.
    pub fn add(&mut self, size: u64, seed: u32, outcome: Outcome) {
        self.runs.insert((size, seed), outcome);
    }

    /// How many runs were made.
    pub fn made(&self) -> u32 {
        u32::try_from(self.runs.len()).unwrap_or(u32::MAX)
    }

    /// The sizes that were tried, ascending.
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

    /// What the runs made so far say.
    pub fn answer(&self) -> Answer {
        answer::of(&self.design, &self.curve())
    }

    /// What runs next; `None` where the search is at its end.
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

    /// Runs that are left.
    fn left(&self) -> u32 {
        self.design.runs.saturating_sub(self.made())
    }

    /// Runs that confirming both ends takes.
    fn reserve(&self) -> u32 {
        2 * self.design.seeds.saturating_sub(1)
    }

    /// The seeds that a size lacks, as many as may still run.
    fn step(&self, size: u64) -> Option<Step> {
        let lacks = |seed: &u32| !self.runs.contains_key(&(size, *seed));
        let seeds: Vec<u32> = (0..self.design.seeds)
            .filter(lacks)
            .take(self.left() as usize)
            .collect();
        (!seeds.is_empty()).then_some(Step { size, seeds })
    }

    /// The places in the curve of the smallest size from which on all lean within, and of the one below it.
    fn gap(&self, curve: &[Point]) -> (usize, Option<usize>) {
        let slow = |point: &Point| !point.leans_within(self.design.within);
        match curve.iter().rposition(slow) {
            Some(below) => (below + 1, Some(below)),
            None => (0, None),
        }
    }

    /// The next size for the first seed alone.
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

    /// The next size for all seeds: the ends of the gap, then further out.
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
