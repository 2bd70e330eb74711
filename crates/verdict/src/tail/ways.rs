//! Selections of whole trials: subsets for the bootstrap, labellings for the test.

use crate::number::floor_u64;
use crate::rng::Xoshiro;

/// Maximum number of selections that are enumerated. If there are more, random selections are drawn.
const ENUMERATED: u64 = 4_096;
/// Maximum number of random selections. With this number, 50 estimates lie beyond each end of a 95 % interval. So the
/// ends are accurate to about 1/50 of the interval's width.
const MAX_DRAWN: u32 = 1_999;

/// Numbers of trials of A and B. In lists of trials, A's come first, then B's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub of_a: usize,
    pub of_b: usize,
    pub paired: bool,
}

/// All selections of trials, or a random sample of them.
pub(super) struct Ways {
    shape: Shape,
    kind: Kind,
    /// Number of all selections; `None` if there are too many to enumerate.
    all: Option<u64>,
    draws: u32,
    seed: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Subsets: some of the pairs, or half of A's and half of B's trials. A subset is never empty.
    Subsets,
    /// Labellings: which trials are labelled as B. One trial of each pair, or as many trials as B has.
    Labels,
}

impl Ways {
    /// Subsets of the trials, or a random sample of the subsets. Unpaired subsets have half of each variant's trials,
    /// so the spread of the estimates equals that of the full samples (McCarthy 1969).
    pub fn subsets(shape: Shape, draws: u32, seed: u64) -> Self {
        let count = if shape.paired {
            power_of_two(shape.of_a)
        } else {
            u64::MAX
        };
        Self::new(shape, Kind::Subsets, count, draws, seed)
    }

    /// Labellings of the trials, or the actual labelling and a random sample of the others.
    pub fn labels(shape: Shape, draws: u32, seed: u64) -> Self {
        let count = if shape.paired {
            power_of_two(shape.of_a)
        } else {
            ways_to_choose(shape.of_a, shape.of_b)
        };
        Self::new(shape, Kind::Labels, count, draws, seed)
    }

    fn new(shape: Shape, kind: Kind, count: u64, draws: u32, seed: u64) -> Self {
        Self {
            shape,
            kind,
            all: (count <= ENUMERATED).then_some(count),
            draws: draws.min(MAX_DRAWN),
            seed,
        }
    }

    /// True if every possible selection is visited.
    pub fn are_all(&self) -> bool {
        self.all.is_some()
    }

    /// Calls `look` for every selection, or for each one that is drawn if there are too many. Its argument has one flag
    /// per trial, true for a selected trial.
    pub fn visit(&self, look: &mut impl FnMut(&[bool])) {
        let Shape { of_a, of_b, paired } = self.shape;
        let mut chosen = vec![false; of_a + of_b];
        match (self.kind, self.all) {
            (Kind::Labels, Some(_)) if !paired => {
                for_each_choice(of_a + of_b, of_b, &mut |of_b| {
                    chosen.fill(false);
                    for &trial in of_b {
                        chosen[trial] = true;
                    }
                    look(&chosen);
                });
            }
            (_, Some(count)) => {
                for pattern in 0..count {
                    self.toss(&mut chosen, |coin| pattern >> coin & 1 == 1);
                    if chosen.contains(&true) {
                        look(&chosen);
                    }
                }
            }
            (_, None) => {
                let mut random = Xoshiro::new(self.seed);
                if matches!(self.kind, Kind::Labels) {
                    chosen[of_a..].fill(true);
                    look(&chosen);
                }
                let mut drawn = 0;
                while drawn < self.draws {
                    match (self.kind, paired) {
                        (_, true) => self.toss(&mut chosen, |_| random.bits() >> 63 == 1),
                        (Kind::Labels, false) => random.shuffle(&mut chosen),
                        (Kind::Subsets, false) => {
                            let (a, b) = chosen.split_at_mut(of_a);
                            halve(a, &mut random);
                            halve(b, &mut random);
                        }
                    }
                    if chosen.contains(&true) {
                        look(&chosen);
                        drawn += 1;
                    }
                }
            }
        }
    }

    /// Selects each pair for which `coin` returns true, or swaps its labels. The argument of `coin` is the index of the
    /// pair.
    fn toss(&self, chosen: &mut [bool], mut coin: impl FnMut(usize) -> bool) {
        let labels = matches!(self.kind, Kind::Labels);
        let (a, b) = chosen.split_at_mut(self.shape.of_a);
        for (pair, (a, b)) in a.iter_mut().zip(b).enumerate() {
            *a = coin(pair);
            *b = *a != labels;
        }
    }
}

/// Selects half of the trials at random. If their number is odd, one more trial is selected with probability one half.
fn halve(trials: &mut [bool], random: &mut Xoshiro) {
    let odd = trials.len() % 2 == 1 && random.bits() >> 63 == 1;
    let half = (trials.len() / 2 + usize::from(odd)).max(1);
    trials.fill(false);
    trials[..half].fill(true);
    random.shuffle(trials);
}

/// 2 to the power of `coins`; `u64::MAX` on overflow.
fn power_of_two(coins: usize) -> u64 {
    u32::try_from(coins)
        .ok()
        .and_then(|coins| 1_u64.checked_shl(coins))
        .unwrap_or(u64::MAX)
}

/// Returns the number of ways to choose `m` of `n + m` trials. Exact for the numbers that are enumerated.
fn ways_to_choose(n: usize, m: usize) -> u64 {
    floor_u64(2.0 / crate::rank_sum::smallest_p(n as u64, m as u64) + 0.5)
}

/// Calls `visit` with every set of `size` indices below `count`, in lexicographic order.
fn for_each_choice(count: usize, size: usize, visit: &mut impl FnMut(&[usize])) {
    let mut choice: Vec<usize> = (0..size).collect();
    loop {
        visit(&choice);
        let Some(moving) = (0..size).rev().find(|&i| choice[i] < count - size + i) else {
            return;
        };
        choice[moving] += 1;
        for i in moving + 1..size {
            choice[i] = choice[i - 1] + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ways: &Ways) -> Vec<Vec<bool>> {
        let mut seen = Vec::new();
        ways.visit(&mut |chosen| seen.push(chosen.to_vec()));
        seen
    }

    fn shape(of_a: usize, of_b: usize, paired: bool) -> Shape {
        Shape { of_a, of_b, paired }
    }

    #[test]
    fn few_ways_are_each_taken_once() {
        for (ways, count) in [
            (Ways::subsets(shape(5, 5, true), 9, 1), 31),
            (Ways::labels(shape(5, 5, true), 9, 1), 32),
            (Ways::labels(shape(3, 5, false), 9, 1), 56),
        ] {
            let mut seen = all(&ways);
            assert!(ways.are_all());
            assert_eq!(seen.len(), count);
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), count);
        }
    }

    #[test]
    fn pairs_stay_together_and_labels_keep_their_number() {
        for of_a in [6, 20] {
            for chosen in all(&Ways::subsets(shape(of_a, of_a, true), 50, 1)) {
                assert_eq!(chosen[..of_a], chosen[of_a..]);
            }
            for chosen in all(&Ways::labels(shape(of_a, of_a, true), 50, 1)) {
                assert!((0..of_a).all(|pair| chosen[pair] != chosen[of_a + pair]));
            }
            for chosen in all(&Ways::labels(shape(of_a, 9, false), 50, 1)) {
                assert_eq!(chosen.iter().filter(|is_b| **is_b).count(), 9);
            }
        }
    }

    #[test]
    fn many_ways_are_drawn_and_the_one_that_was_run_is_first() {
        let labels = all(&Ways::labels(shape(20, 20, true), 99, 1));
        assert_eq!(labels.len(), 100);
        assert!((0..40).all(|trial| labels[0][trial] == (trial >= 20)));
        let halves = all(&Ways::subsets(shape(7, 8, false), 99, 1));
        assert_eq!(halves.len(), 99);
        for chosen in halves {
            let count = |side: &[bool]| side.iter().filter(|taken| **taken).count();
            assert!((3..=4).contains(&count(&chosen[..7])) && count(&chosen[7..]) == 4);
        }
    }
}
