//! Tests of the search for the first bad version, on histories with branches, skipped versions and uncertain results.

use std::collections::BTreeSet;

use pagetide_quantity::Direction;
use pagetide_verdict::bisect::{Answer, Mark, Search, Unfit, looks, mark_of};
use pagetide_verdict::judgement::Shift;
use pagetide_verdict::{Data, Family, MetricSample, judge};
use proptest::collection::vec;
use proptest::prelude::*;

/// Parents of each version in a linear history.
fn line(versions: usize) -> Vec<Vec<usize>> {
    (0..versions)
        .map(|at| at.checked_sub(1).into_iter().collect())
        .collect()
}

/// A random graph in which every version but the first has one to three parents before it.
fn graph() -> impl Strategy<Value = Vec<Vec<usize>>> {
    vec(vec(any::<prop::sample::Index>(), 1..4), 1..60).prop_map(|picks| {
        let mut parents = vec![Vec::new()];
        for (before, picks) in (1..).zip(picks) {
            let mut of: Vec<usize> = picks.iter().map(|pick| pick.index(before)).collect();
            of.sort_unstable();
            of.dedup();
            parents.push(of);
        }
        parents
    })
}

fn ancestors(parents: &[Vec<usize>], of: usize) -> BTreeSet<usize> {
    let mut all = BTreeSet::new();
    let mut open = vec![of];
    while let Some(at) = open.pop() {
        if all.insert(at) {
            open.extend(&parents[at]);
        }
    }
    all
}

/// Runs a search to its end. `found` returns the mark of a version. Returns the answer and the versions tried.
fn walk(mut search: Search, mut found: impl FnMut(usize) -> Mark) -> (Answer, Vec<usize>) {
    let mut tried = Vec::new();
    while let Some(at) = search.next() {
        assert!(!tried.contains(&at), "{at} is tried twice");
        assert!(tried.len() < 10_000);
        tried.push(at);
        let before = search.suspects().len();
        let mark = found(at);
        search.mark(at, mark);
        if mark != Mark::Skip {
            assert!(search.suspects().len() < before, "{at} taught nothing");
        }
    }
    (search.answer().expect("nothing is left to try"), tried)
}

proptest! {
    #[test]
    fn a_straight_history_is_halved(versions in 2_usize..3000, pick in any::<prop::sample::Index>()) {
        let culprit = 1 + pick.index(versions - 1);
        let search = Search::new(line(versions), 0, versions - 1).expect("a line");
        let promised = search.steps_left() as usize;
        let (answer, tried) = walk(search, |at| if at >= culprit { Mark::Bad } else { Mark::Good });
        prop_assert_eq!(answer, Answer::First(culprit));
        prop_assert!(tried.len() <= promised, "{} > {promised}", tried.len());
    }

    #[test]
    fn the_culprit_of_any_history_is_found_or_among_those_that_cannot_be_told_apart(
        parents in graph(),
        pick in any::<prop::sample::Index>(),
        dead in vec(any::<bool>(), 61),
        share in 0_usize..4,
    ) {
        let bad = parents.len() - 1;
        // Every version descends from the first one, so the first one is a valid good version.
        let suspects: Vec<usize> = ancestors(&parents, bad).into_iter().filter(|at| *at != 0).collect();
        let culprit = suspects[pick.index(suspects.len())];
        let cannot = |at: usize| dead[at] && at % 4 < share;
        let search = Search::new(parents.clone(), 0, bad).expect("it is an ancestor");
        let (answer, tried) = walk(search, |at| {
            if cannot(at) {
                Mark::Skip
            } else if ancestors(&parents, at).contains(&culprit) {
                Mark::Bad
            } else {
                Mark::Good
            }
        });
        match answer {
            Answer::First(first) => prop_assert_eq!(first, culprit),
            Answer::Among(all) => {
                prop_assert!(all.contains(&culprit), "{all:?} without {culprit}");
                let last = all[all.len() - 1];
                prop_assert!(all.iter().all(|at| *at == last || cannot(*at)), "{all:?}");
                prop_assert!(all.iter().all(|at| *at == last || tried.contains(at)), "{all:?}");
            }
        }
    }

    #[test]
    fn a_resumed_search_tries_the_same_version(parents in graph(), marks in vec(0_u8..3, 61)) {
        let bad = parents.len() - 1;
        let search = Search::new(parents, 0, bad).expect("it is an ancestor");
        let mark = |at: usize| [Mark::Good, Mark::Bad, Mark::Skip][usize::from(marks[at])];
        let (_, tried) = walk(search.clone(), mark);
        let mut again = search;
        for at in tried {
            prop_assert_eq!(again.next(), Some(at));
            again.mark(at, mark(at));
        }
        prop_assert!(again.next().is_none());
    }

    #[test]
    fn looks_double_up_to_the_most(most in 1_u64..500) {
        let all = looks(most);
        prop_assert_eq!(all.last(), Some(&most));
        prop_assert!(all.windows(2).all(|pair| pair[1] == 2 * pair[0]));
        prop_assert!(all.len() == 1 || all[0] >= 6);
    }
}

#[test]
fn a_range_of_skipped_versions_is_left_in_few_steps() {
    // 40 versions in the middle cannot be judged, and the first bad version is not among them.
    let search = Search::new(line(101), 0, 100).unwrap();
    let (answer, tried) = walk(search, |at| match at {
        30..70 => Mark::Skip,
        80.. => Mark::Bad,
        _ => Mark::Good,
    });
    assert_eq!(answer, Answer::First(80));
    assert!(tried.len() < 14, "{tried:?}");
}

#[test]
fn a_first_bad_version_next_to_skipped_ones_is_reported_with_them() {
    let search = Search::new(line(11), 0, 10).unwrap();
    let (answer, _) = walk(search, |at| match at {
        4..7 => Mark::Skip,
        7.. => Mark::Bad,
        _ => Mark::Good,
    });
    assert_eq!(answer, Answer::Among(vec![4, 5, 6, 7]));
}

#[test]
fn adjacent_versions_need_no_step_and_an_invalid_history_is_refused() {
    let search = Search::new(line(2), 0, 1).unwrap();
    assert_eq!((search.steps_left(), search.next()), (0, None));
    assert_eq!(search.answer(), Some(Answer::First(1)));
    assert_eq!(Search::new(line(3), 2, 1).unwrap_err(), Unfit::NoAncestor);
    assert_eq!(Search::new(line(3), 0, 3).unwrap_err(), Unfit::NoAncestor);
    let two_lines = vec![vec![], vec![], vec![0]];
    assert_eq!(Search::new(two_lines, 1, 2).unwrap_err(), Unfit::NoAncestor);
    let loops = vec![vec![1], vec![0]];
    assert_eq!(
        Search::new(loops, 0, 1).unwrap_err(),
        Unfit::Order { at: 0 }
    );
}

/// The mark from 12 pairs in which B is `factor` times A, plus or minus `spread`.
fn mark(factor: f64, spread: f64) -> Option<Mark> {
    let a: Vec<f64> = (0..12).map(|seed| 100.0 + f64::from(seed)).collect();
    let b: Vec<f64> = (0..)
        .zip(&a)
        .map(|(seed, a): (i32, _)| a * (factor + spread * f64::from(seed % 3 - 1)))
        .collect();
    let sample = MetricSample {
        name: "run".into(),
        unit: "nanos".into(),
        direction: Direction::Lower,
        primary: true,
        margin: None,
        scale: pagetide_verdict::sample::Scale::default(),
        data: Data::paired(&a, &b),
    };
    let judged = judge(&Family::new(1, vec![sample])).expect("a family");
    mark_of(&judged[0], Shift::Up)
}

#[test]
fn an_uncertain_version_is_not_marked_good_and_an_opposite_effect_is_not_marked_bad() {
    assert_eq!(mark(1.3, 0.01), Some(Mark::Bad));
    assert_eq!(mark(0.7, 0.01), Some(Mark::Good));
    assert_eq!(mark(1.0, 0.001), Some(Mark::Good));
    assert_eq!(mark(1.0, 0.3), None);
    assert_eq!(mark(f64::NAN, 0.0), Some(Mark::Skip));
}
