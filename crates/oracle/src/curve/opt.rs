//! The OPT curve: the faults of Belady's policy at every size, with memory proportional to the number of pages.
//!
//! With memory of C pages a reference is a hit if the interval since its page's last use is among the most intervals
//! that C − 1 tokens can serve (see `policy/opt.rs`). With one more page of memory, the same tokens are free and one
//! more. So the free tokens of all sizes are one list: for each size, the time at which its additional token became
//! free. An interval is served by the first size whose additional token became free before the interval began. Each
//! larger size then loses its latest token that is early enough: it keeps the earlier of its own time and the time
//! carried to it, and the later one is carried on. This is the critical stack of Bilardi, Ekanadham, Pattnaik,
//! "Efficient stack distance computation for a class of priority replacement policies", Int. J. Parallel Programming
//! 41, 2013; compare Sugumar and Abraham, "Efficient simulation of caches under optimal replacement", SIGMETRICS 1993.
//!
//! One reference can change the times of hundreds of sizes. But from any run of consecutive sizes it removes only one
//! time, the latest that is early enough, and adds one. This is called an exchange (`owners.rs`). The order of the
//! times within the run does not matter. So the string is processed in pieces. For each piece, the exchanges of all
//! sizes are turned into exchanges of groups of sizes (`group.rs`), then of the parts of a group, down to bundles of
//! sizes that fit in a core's caches (`bundle.rs`). Between pieces only one time per size and one per page is stored.
//! Times are renumbered for each piece and each bundle.

mod bundle;
mod group;
mod halving;
mod layout;
mod leaf;
mod owners;
mod sizes;

use super::Curve;
use super::ranks::Ranks;
use crate::flat::{self, AHEAD};
use crate::number::{at, narrow};
use crate::tokens::Tokens;
use group::Group;
use owners::Exchange;
use sizes::Sizes;

/// Number of references in a piece, per page of the string.
///
/// Longer pieces need fewer passes over all memory sizes, but more memory for their exchanges.
const PIECE_FOR_A_PAGE: usize = 4;
/// Smallest number of references in a piece.
const SHORTEST_PIECE: usize = 1 << 16;
/// Largest number of references in a piece, unless there are more pages: then a piece has one reference for each page.
const LONGEST_PIECE: usize = 1 << 20;

/// Returns the exact OPT curve for memory of 1 to `pages` pages.
pub fn opt(references: &[u32], pages: u32) -> Curve {
    let piece = (at(pages) * PIECE_FOR_A_PAGE).clamp(SHORTEST_PIECE, LONGEST_PIECE);
    opt_in_pieces(references, pages, piece.max(at(pages)), Group::new())
}

fn opt_in_pieces(references: &[u32], pages: u32, piece: usize, group: Group) -> Curve {
    let mut stack = Stack::new(pages, group);
    for some in references.chunks(piece) {
        stack.take(some);
    }
    let Stack { hits, at_once, .. } = stack;
    let distances = std::iter::once(at_once).chain(hits.into_iter().map(u64::from));
    Curve::of_distances(references.len() as u64, distances)
}

/// State of all memory sizes between two pieces of the string.
struct Stack {
    /// For each page, the time before which a token must be free to keep the page from its last use on; 0 if the page
    /// was never used.
    until: Vec<u32>,
    /// For memory of 2, 3, … pages: the time at which one token became free, namely the one that the next smaller size
    /// does not have.
    free: Vec<u32>,
    hits: Vec<u32>,
    /// Number of references to the same page as the reference before. They are hits at every size.
    at_once: u64,
    group: Group,
}

impl Stack {
    fn new(pages: u32, group: Group) -> Self {
        Self {
            until: flat::zeroed(at(pages)),
            // All tokens are free from the start. The token of the smallest size is used first, so its time is set to
            // the latest.
            free: (0..pages).rev().collect(),
            hits: flat::zeroed(at(pages)),
            at_once: 0,
            group,
        }
    }

    /// Processes a piece of the string. Its times are numbered after those of the free tokens.
    fn take(&mut self, references: &[u32]) {
        let end = self.free.len() + references.len();
        let exchanges = self.exchanges(references, end);
        let mut sizes = Sizes {
            first: 0,
            free: &mut self.free,
            hits: &mut self.hits,
        };
        self.group.solve(&mut sizes, &exchanges, end);
        self.number_anew(end);
    }

    /// Returns one exchange of times for each reference that is a hit at some size: the time of the token it takes, and
    /// the time at which it returns this token.
    fn exchanges(&mut self, references: &[u32], end: usize) -> Vec<Exchange> {
        let first = narrow(self.free.len());
        let mut tokens = Tokens::new();
        tokens.reset(end);
        for time in 0..first {
            tokens.insert(time);
        }
        let mut exchanges = Vec::with_capacity(references.len());
        for (place, &page) in references.iter().enumerate() {
            if let Some(&later) = references.get(place + 2 * AHEAD) {
                flat::prefetch(&self.until, later);
                tokens.prefetch(self.until[at(references[place + AHEAD])]);
            }
            let now = first + narrow(place);
            // The interval begins just after `now`: a token that becomes free with the next reference can still serve
            // it.
            let until = std::mem::replace(&mut self.until[at(page)], now + 2);
            if until == now + 1 {
                // The page was referenced twice in a row, so the interval is empty.
                self.at_once += 1;
            } else if until > 0
                && let Some(taken) = tokens.latest(until - 1)
            {
                tokens.remove(taken);
                tokens.insert(now);
                exchanges.push(Exchange { given: now, taken });
            }
        }
        exchanges
    }

    /// Renumbers the times that are still in use from 0 without gaps.
    fn number_anew(&mut self, end: usize) {
        let mut ranks = Ranks::default();
        ranks.reset(end);
        for &time in &self.free {
            ranks.insert(time);
        }
        let count = ranks.count();
        for time in &mut self.free {
            *time = ranks.of(*time);
        }
        for until in self.until.iter_mut().filter(|until| **until > 0) {
            // The time of a page used by the last reference is later than the end.
            let beyond = at(*until) > end;
            *until = if beyond { count + 1 } else { ranks.of(*until) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bundle::Patience;
    use super::*;
    use crate::Choice;
    use pagetide_reference::Rng;

    fn string(rng: &mut Rng, pages: u32, length: u32) -> Vec<u32> {
        let kind = rng.below_u32(4);
        let random = |time: u32| match kind {
            0 => rng.below_u32(pages),
            1 => time * 7 % pages,
            2 => rng.below_u32(1 + rng.clone().below_u32(pages)),
            _ if (time / 64).is_multiple_of(2) => (time / 64 * 31 + time) % pages,
            _ => rng.below_u32(pages),
        };
        (0..length).map(random).collect()
    }

    fn check(string: &[u32], pages: u32, piece: usize, group: Group) {
        let curve = opt_in_pieces(string, pages, piece, group);
        for size in 1..=pages.min(80) {
            let size = if pages > 80 { size * pages / 80 } else { size };
            let hits = Choice::opt().start(pages, size).feed(string);
            let expected = string.len() as u64 - hits;
            assert_eq!(curve.faults(size), expected, "{size} of {pages} pages");
        }
    }

    #[test]
    fn groups_pieces_and_bundles_of_any_size_give_the_curve_of_simulation() {
        let mut rng = Rng::new(23);
        for round in 0..120 {
            let pages = 2 + rng.below_u32(if round % 3 == 0 { 1500 } else { 60 });
            let length = 1 + rng.below_u32(6000);
            let string = string(&mut rng, pages, length);
            let piece = 1 + at(rng.below_u32(3000));
            let patience = Patience {
                first: at(rng.below_u32(200)),
                each: round % 3 * 2,
            };
            let most = 1 + at(rng.below_u32(200));
            let group = Group::of(most, 2 + at(rng.below_u32(5)), patience);
            check(&string, pages, piece, group);
        }
    }

    #[test]
    fn more_events_than_a_leaf_can_number_give_the_curve_of_simulation() {
        let mut rng = Rng::new(24);
        let patience = Patience { first: 0, each: 0 };
        for pages in [1, 3, 50, 300] {
            let string = string(&mut rng, pages, 60_000);
            check(&string, pages, 60_000, Group::of(400, 3, patience));
        }
    }
}
