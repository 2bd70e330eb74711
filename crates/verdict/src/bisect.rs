//! Which version was the first to differ: the search over a history, without knowing what a version is or how it is judged.
//!
//! A history is a graph without cycles in which every version comes after its parents; a straight line is one too. One version is
//! known to be good, a descendant of it to be bad. *Suspects* are the ancestors of the bad one, itself included, that are
//! no ancestors of a good one: the first bad version is among them. [`Search::next`] names the suspect that halves them best, and
//! [`Search::mark`] takes what was found there. A version that cannot be judged is skipped: it stays a suspect, and what is tried
//! next keeps away from it, for what cannot be judged seldom stands alone.
//!
//! What is asked next depends on the history and the marks alone, so that a search goes on from its marks wherever it was stopped.

use serde::{Deserialize, Serialize};

use crate::judgement::{Judgement, Shift, Verdict};

/// What is known of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// It is as the good one.
    Good,
    /// It differs as the bad one does.
    Bad,
    /// It cannot be judged.
    Skip,
}

impl Mark {
    /// The word for it, which is git's.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Skip => "skip",
        }
    }
}

/// Why there is nothing to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A version stands before one of its parents, or names one that is not there.
    #[error("the history is out of order at its version {at}")]
    Order {
        /// Its place.
        at: usize,
    },
    /// The good version is no ancestor of the bad one.
    #[error("the good version is no ancestor of the bad one")]
    NoAncestor,
}

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// This is the first bad version.
    First(usize),
    /// It is one of these, which cannot be told apart: all but the last were skipped.
    Among(Vec<usize>),
}

/// A search on its way.
#[derive(Clone, Debug)]
pub struct Search {
    parents: Vec<Vec<usize>>,
    bad: usize,
    suspects: Vec<bool>,
    skipped: Vec<bool>,
}

impl Search {
    /// Begins a search. `parents` has the places of each version's parents, all before its own.
    pub fn new(parents: Vec<Vec<usize>>, good: usize, bad: usize) -> Result<Self, Unfit> {
        let places = parents.len();
        let wrong = (0..places).find(|&at| parents[at].iter().any(|parent| *parent >= at));
        if let Some(at) = wrong {
            return Err(Unfit::Order { at });
        }
        if good >= bad || bad >= places {
            return Err(Unfit::NoAncestor);
        }
        let mut search = Self {
            suspects: vec![true; places],
            skipped: vec![false; places],
            parents,
            bad,
        };
        let ancestors = search.ancestors(bad);
        if !ancestors[good] {
            return Err(Unfit::NoAncestor);
        }
        search.suspects = ancestors;
        search.mark(good, Mark::Good);
        Ok(search)
    }

    /// Takes what was found of a version.
    pub fn mark(&mut self, place: usize, mark: Mark) {
        match mark {
            Mark::Skip => self.skipped[place] = true,
            Mark::Good => {
                let clear = self.ancestors(place);
                // What is bad stays so, whatever is said of its descendants.
                let bad = self.bad;
                self.keep(|at| !clear[at] || at == bad);
            }
            Mark::Bad if self.suspects[place] => {
                let still = self.ancestors(place);
                self.keep(|at| still[at]);
                self.bad = place;
            }
            Mark::Bad => {}
        }
    }

    fn keep(&mut self, stays: impl Fn(usize) -> bool) {
        for (at, is_suspect) in self.suspects.iter_mut().enumerate() {
            *is_suspect = *is_suspect && stays(at);
        }
    }

    /// Versions that may be the first bad one.
    pub fn suspects(&self) -> Vec<usize> {
        (0..self.parents.len())
            .filter(|&at| self.suspects[at])
            .collect()
    }

    /// About how many versions must still be tried, where none is skipped.
    pub fn steps_left(&self) -> u32 {
        let suspects = self.suspects.iter().filter(|is| **is).count();
        suspects.max(1).next_power_of_two().ilog2()
    }

    /// The version to try next; `None` where nothing is left to try.
    pub fn next(&self) -> Option<usize> {
        let weights = self.weights();
        let all = weights[self.bad];
        let halves = |at: usize| weights[at].min(all - weights[at]);
        let skipped: Vec<usize> = (0..weights.len())
            .filter(|&at| self.suspects[at] && self.skipped[at])
            .map(|at| weights[at])
            .collect();
        let away = |at: usize| {
            let distances = skipped.iter().map(|weight| weight.abs_diff(weights[at]));
            distances.min().map_or(1, |distance| distance + 1)
        };
        let open = (0..weights.len())
            .filter(|&at| self.suspects[at] && !self.skipped[at] && at != self.bad);
        // Of equals the earliest: it is compiled with fewest files changed since the good one.
        open.max_by_key(|&at| (halves(at).saturating_mul(away(at)), std::cmp::Reverse(at)))
    }

    /// What came of it; `None` while there is something left to try.
    pub fn answer(&self) -> Option<Answer> {
        if self.next().is_some() {
            return None;
        }
        let suspects = self.suspects();
        Some(match suspects.as_slice() {
            [_] => Answer::First(self.bad),
            _ => Answer::Among(suspects),
        })
    }

    /// A version with all its ancestors.
    fn ancestors(&self, of: usize) -> Vec<bool> {
        let mut all = vec![false; self.parents.len()];
        let mut open = vec![of];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut all[at], true) {
                open.extend(self.parents[at].iter().copied());
            }
        }
        all
    }

    /// Of each suspect how many suspects are its ancestors, itself included.
    fn weights(&self) -> Vec<usize> {
        let mut weights = vec![0; self.parents.len()];
        let mut seen = vec![usize::MAX; self.parents.len()];
        for at in (0..self.parents.len()).filter(|&at| self.suspects[at]) {
            let mut parents = self.parents[at]
                .iter()
                .copied()
                .filter(|&parent| self.suspects[parent]);
            weights[at] = match (parents.next(), parents.next()) {
                (None, _) => 1,
                // On a straight stretch there is nothing to count again.
                (Some(parent), None) => weights[parent] + 1,
                _ => self.count(at, &mut seen),
            };
        }
        weights
    }

    /// Counts the suspects among a version and its ancestors. `seen` has the version that saw each last.
    fn count(&self, of: usize, seen: &mut [usize]) -> usize {
        let (mut count, mut open) = (0, vec![of]);
        while let Some(at) = open.pop() {
            if self.suspects[at] && seen[at] != of {
                seen[at] = of;
                count += 1;
                open.extend(self.parents[at].iter().copied());
            }
        }
        count
    }
}

/// What a judgement of a version against the good one says, where the bad one differs from the good one in the direction
/// `towards`. `None` while it is open: more trials may tell. Who surely differs the other way does not show what the bad one shows.
pub fn mark_of(judgement: &Judgement, towards: Shift) -> Option<Mark> {
    match judgement.verdict {
        Verdict::Equivalent | Verdict::Identical => Some(Mark::Good),
        Verdict::Invalid { .. } => Some(Mark::Skip),
        Verdict::Inconclusive { .. } => None,
        Verdict::Improved | Verdict::Regressed | Verdict::Changed | Verdict::Confounded { .. } => {
            let shift = judgement.shift?;
            Some(if shift == towards {
                Mark::Bad
            } else {
                Mark::Good
            })
        }
    }
}

/// Numbers of seeds after which a version is judged: each twice the one before, the last one the most that are allowed, the
/// first not so few that nothing can be claimed.
pub fn looks(most: u64) -> Vec<u64> {
    /// Fewest pairs with which anything can be claimed at 95 %.
    const FEWEST: u64 = 6;
    let mut looks = vec![most];
    let mut next = most;
    while next.is_multiple_of(2) && next / 2 >= FEWEST {
        next /= 2;
        looks.insert(0, next);
    }
    looks
}
