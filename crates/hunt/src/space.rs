//! The space of a hunt, as the search sees it: candidates that can be drawn, changed, crossed and simplified.

use pagetide_reference::Rng;

/// The set of all candidates of a hunt.
pub trait Space {
    /// A candidate, which is a point of the space.
    type Point: Clone + PartialEq;

    /// Candidates that are tried first.
    fn first(&self, rng: &mut Rng) -> Vec<Self::Point>;

    /// Draws a candidate.
    fn random(&self, rng: &mut Rng) -> Self::Point;

    /// Returns a candidate that differs from `point` in one respect, or a random candidate if no such change is found.
    fn mutated(&self, point: &Self::Point, rng: &mut Rng) -> Self::Point;

    /// Returns a candidate with some parts of `a` and some of `b`, or `a` with a change if they do not fit together.
    fn crossed(&self, a: &Self::Point, b: &Self::Point, rng: &mut Rng) -> Self::Point;

    /// Candidates that are simpler than `point` in one respect each, the largest simplification first. Repeated
    /// simplification always comes to an end.
    fn simpler(&self, point: &Self::Point) -> Vec<Self::Point>;

    /// Returns the candidate on a machine with `percent` of the size; `None` if there is no such machine.
    fn resized(&self, point: &Self::Point, percent: u64) -> Option<Self::Point>;

    /// Returns the name of the part of the space to which the candidate belongs. The account of a hunt is grouped by
    /// these names.
    fn region(&self, point: &Self::Point) -> String;

    /// Returns the coarse properties of the candidate, sorted and without repetition. The search learns which
    /// combinations come close to the goal.
    fn traits(&self, point: &Self::Point) -> Vec<String>;

    /// Returns one line that describes the candidate.
    fn label(&self, point: &Self::Point) -> String;
}

/// Draws one of `choices`; `None` if there are none.
pub fn choice<'a, T>(choices: &'a [T], rng: &mut Rng) -> Option<&'a T> {
    let index = rng.below(choices.len() as u64);
    choices.get(usize::try_from(index).unwrap_or(0))
}
