//! Finds the first bad version in a history. The search does not depend on what a version is or how it is judged.
//!
//! A history is a directed acyclic graph in which every version comes after its parents; it may be a straight line. One
//! version is known to be good, and one of its descendants is known to be bad. *Suspects* are the ancestors of the bad
//! version, itself included, that are not ancestors of a good version. The first bad version is a suspect.
//! [`Search::next`] returns the suspect that halves the set best, and [`Search::mark`] takes the result. A version that
//! cannot be judged is skipped: it stays a suspect, and the search prefers versions far from it, because the neighbours
//! of a version that cannot be judged often cannot be judged either.
//!
//! The next version depends only on the history and the marks, so an interrupted search can be resumed from its marks.

use serde::{Deserialize, Serialize};

use crate::judgement::{Judgement, Shift, Verdict};

/// Result of judging one version in a search for the first bad version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// The version behaves like the good version.
    Good,
    /// The version differs from the good version in the same direction as the bad version.
    Bad,
    /// The version cannot be judged.
    Skip,
}

impl Mark {
    /// Returns the name that git bisect uses for this mark.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Skip => "skip",
        }
    }
}

/// Why a history cannot be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A version comes before one of its parents, or names a parent that does not exist.
    #[error("the history is out of order at its version {at}")]
    Order {
        /// Index of the version that breaks the order.
        at: usize,
    },
    /// The good version is not an ancestor of the bad version.
    #[error("the good version is no ancestor of the bad one")]
    NoAncestor,
}

/// Result of a search for the first bad version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Index of the first bad version.
    First(usize),
    /// Indices of the versions among which the first bad version is. They cannot be distinguished, because all but the
    /// last were skipped.
    Among(Vec<usize>),
}

/// A search for the first bad version, in progress.
#[derive(Clone, Debug)]
pub struct Search {
    parents: Vec<Vec<usize>>,
    bad: usize,
    suspects: Vec<bool>,
    skipped: Vec<bool>,
}

impl Search {
    /// Starts a search. `parents` holds the indices of the parents of each version; a parent has a smaller index than
    /// its child. Fails if this order is violated or `good` is not an ancestor of `bad`.
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

    /// Records the mark of the version with index `place`.
    pub fn mark(&mut self, place: usize, mark: Mark) {
        match mark {
            Mark::Skip => self.skipped[place] = true,
            Mark::Good => {
                let clear = self.ancestors(place);
                // A bad version stays a suspect, whatever the marks of its descendants are.
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

    /// Returns the indices of the versions that may be the first bad one.
    pub fn suspects(&self) -> Vec<usize> {
        (0..self.parents.len())
            .filter(|&at| self.suspects[at])
            .collect()
    }

    /// Returns the approximate number of versions that must still be tried if none is skipped.
    pub fn steps_left(&self) -> u32 {
        let suspects = self.suspects.iter().filter(|is| **is).count();
        suspects.max(1).next_power_of_two().ilog2()
    }

    /// Returns the version to try next; `None` if nothing is left to try.
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
        // Among equally good versions, the earliest is taken: fewest files changed since the good version, so it
        // compiles fastest.
        open.max_by_key(|&at| (halves(at).saturating_mul(away(at)), std::cmp::Reverse(at)))
    }

    /// Returns the result of the search; `None` while there is a version left to try.
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

    /// Returns, for each version, true if it is version `of` or an ancestor of it.
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

    /// Returns the number of suspects among the ancestors of each suspect, the suspect itself included.
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
                // In a linear part of the history, the count follows from that of the only parent.
                (Some(parent), None) => weights[parent] + 1,
                _ => self.count(at, &mut seen),
            };
        }
        weights
    }

    /// Counts the suspects among a version and its ancestors. `seen` holds, for each version, which version was being
    /// counted when the search last visited it.
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

/// Returns the mark of a version that was compared with the good version. `towards` is the direction in which the bad
/// version differs. A version that differs in the opposite direction is good, because it does not show the regression.
/// `None` if more trials are needed: the comparison is inconclusive, or confounded without a significant difference.
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

/// Returns the numbers of seeds after which a version is judged, ascending. Each is twice the number before, and the
/// last is `most`. All numbers before the last are at least six pairs, the minimum with which a difference can be
/// claimed.
pub fn looks(most: u64) -> Vec<u64> {
    /// Minimum number of pairs with which a difference can be claimed at 95 %.
    const MIN: u64 = 6;
    let mut looks = vec![most];
    let mut next = most;
    while next.is_multiple_of(2) && next / 2 >= MIN {
        next /= 2;
        looks.insert(0, next);
    }
    looks
}
