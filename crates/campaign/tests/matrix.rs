//! Tests of `matrix` from the request to the recommendation, with planted programs in a scripted arena: what is
//! recommended is the true best, interactions are named, and nothing is recommended for programs without an effect.

use pagetide_arena::{Trial, VariantSpec};
use pagetide_campaign::matrix::{Kind, Matrix, MatrixOutcome, matrix};
use pagetide_campaign::{Campaign, Nobody, ScenarioSpec, Site};
use pagetide_compare::matrixed::{Factor, Matrixed};
use pagetide_record::SwapSpec;
use pagetide_store::Store;
use sha2::{Digest, Sha256};

use crate::common::{ScriptedArena, campaign, options};

/// Names of the settings, in the order of the factors.
const KEYS: [&str; 5] = ["vm.a", "vm.b", "vm.c", "vm.d", "vm.e"];
/// A program's extra cost, as a share of its time, for the level of each factor; true is the second level.
type Cost = fn(&[bool]) -> f64;
/// What is recommended may cost this share more than the best set; it is what `matrix` calls no difference.
const SAME: f64 = 0.01;

/// Programs whose time depends on settings 0 and 1 together, or on three settings, with the fewest changes from the
/// defaults that make it shortest.
const PLANTED: [(&str, Cost, usize); 6] = [
    ("equal", |x| if x[0] == x[1] { 0.35 } else { 0.0 }, 1),
    ("unequal", |x| if x[0] == x[1] { 0.0 } else { 0.35 }, 0),
    ("both", |x| if x[0] && x[1] { 0.0 } else { 0.35 }, 2),
    ("either", |x| if x[0] || x[1] { 0.0 } else { 0.35 }, 1),
    ("neither", |x| if x[0] || x[1] { 0.35 } else { 0.0 }, 0),
    (
        "three",
        |x| {
            if x[0] && x[1] && x[x.len() - 1] {
                0.0
            } else {
                0.35
            }
        },
        3,
    ),
];

/// The second level of the factor `swap`; the first is zram.
const OTHER_SWAP: &str = "ssd:80us";

/// Levels of the factors in a trial. If `with_swap`, the first factor is the kind of swap.
fn levels(trial: &Trial, factors: usize, with_swap: bool) -> Vec<bool> {
    let of = |(place, key): (usize, &&str)| {
        if with_swap && place == 0 {
            trial.swap != SwapSpec::ZRAM
        } else {
            trial.variant.settings.get(*key).is_some_and(|v| v == "1")
        }
    };
    KEYS[..factors].iter().enumerate().map(of).collect()
}

/// A number from 0 to 1 that depends only on a text, and is independent for different texts.
fn random(text: &str) -> f64 {
    let digest = Sha256::digest(text);
    let number = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    f64::from(number) / f64::from(u32::MAX)
}

/// Runs a matrix over `factors` settings of a program with this cost. The times of its trials vary by up to `spread`
/// in both directions; `number` selects the random values. If `with_swap`, the first factor is the kind of swap.
fn searched(factors: usize, with_swap: bool, spread: f64, number: u32, cost: Cost) -> Matrixed {
    let arena = ScriptedArena {
        planted: Some(Box::new(move |trial| {
            let levels = levels(trial, factors, with_swap);
            let random = random(&format!(
                "{number} {levels:?} {} {}",
                trial.seed, trial.swap
            ));
            (1.0 + cost(&levels)) * (1.0 + spread * (2.0 * random - 1.0))
        })),
        reads: KEYS.map(|key| (key.to_owned(), "0".to_owned())).into(),
        ..ScriptedArena::default()
    };
    let factor = |(place, key): (usize, &&str)| match (with_swap, place) {
        (true, 0) => Factor {
            key: "swap".to_owned(),
            levels: ["zram", OTHER_SWAP].map(str::to_owned),
        },
        _ => Factor {
            key: (*key).to_owned(),
            levels: ["0", "1"].map(str::to_owned),
        },
    };
    let asked = Matrix {
        campaign: Campaign {
            name: format!("matrix-{number}"),
            variants: vec![VariantSpec {
                kernel: "6.12".to_owned(),
                ..VariantSpec::default()
            }],
            scenarios: vec![ScenarioSpec {
                name: "linear".to_owned(),
                swap: vec![SwapSpec::ZRAM],
                ..ScenarioSpec::default()
            }],
            ..campaign(1)
        },
        kinds: vec![Kind {
            name: "zram".to_owned(),
            swap: SwapSpec::ZRAM,
        }],
        factors: KEYS[..factors].iter().enumerate().map(factor).collect(),
        seeds: 4,
        metric: "run".to_owned(),
        may_choose_kernel: false,
    };
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let options = options();
    let site = Site {
        arena: &arena,
        store: &mut store,
        options: &options,
        watch: &Nobody,
    };
    match matrix(asked, site, &|_| ()).unwrap() {
        MatrixOutcome::Found(found) => *found,
        MatrixOutcome::Stopped => panic!("nobody stops this matrix"),
    }
}

/// Returns the extra cost of what is recommended, and how many changes from the defaults it needs.
fn recommended(found: &Matrixed, factors: usize, with_swap: bool, cost: Cost) -> (f64, usize) {
    let choice = &found.choices[found.recommended];
    let of = |(place, key): (usize, &&str)| {
        if with_swap && place == 0 {
            choice.swap == OTHER_SWAP
        } else {
            choice.settings.iter().any(|(k, v)| k == key && v == "1")
        }
    };
    let levels: Vec<bool> = KEYS[..factors].iter().enumerate().map(of).collect();
    let changes = levels.iter().filter(|level| **level).count();
    (cost(&levels), changes)
}

/// Searches each planted program `repeats` times with each of these numbers of settings. Returns the program, its
/// number of settings and in how many searches the true best was recommended and the pair named, if those are not all.
fn planted(repeats: u32, settings: &[usize], with_swap: bool) -> Vec<(&'static str, usize, u32)> {
    let mut wrong = Vec::new();
    for factors in settings {
        for (name, cost, changes) in PLANTED {
            let wanted = changes.min(*factors);
            let is_right = |number: &u32| {
                let found = searched(*factors, with_swap, 0.02, *number, cost);
                let (extra, changed) = recommended(&found, *factors, with_swap, cost);
                let is_best = extra < SAME && changed == wanted;
                let is_named = |kind: &pagetide_compare::matrixed::KindEffects| {
                    kind.sure_interactions().any(|i| i.pairs == [[0, 1]])
                };
                let is_named = found.kinds.iter().any(is_named);
                if !(is_best && is_named) {
                    println!(
                        "{name}, search {number}: named {is_named}, {extra} after {changed} changes of {:?}",
                        found.choices
                    );
                }
                is_best && is_named
            };
            let right = (1..=repeats).filter(is_right).count();
            let right = u32::try_from(right).unwrap();
            println!(
                "{name}, {factors} settings, swap among them: {with_swap}: {right} of {repeats}"
            );
            if right < repeats {
                wrong.push((name, *factors, right));
            }
        }
    }
    wrong
}

/// Searches programs on which no setting has an effect, `repeats` times with each of these numbers of settings. Returns
/// the searches in which something was recommended.
fn null(repeats: u32, settings: &[usize]) -> Vec<(usize, u32)> {
    let mut wrong = Vec::new();
    for factors in settings {
        for number in 1..=repeats {
            let spread = 0.01 * f64::from(number % 10);
            let found = searched(*factors, number % 2 == 0, spread, number, |_| 0.0);
            if found.recommended > 0 {
                wrong.push((*factors, number));
            }
        }
        println!(
            "null, {factors} settings: {} of {repeats} wrong",
            wrong.len()
        );
    }
    wrong
}

#[test]
fn matrix_recommends_the_true_best_of_planted_programs_and_names_the_pair() {
    assert_eq!(planted(1, &[4], false), []);
    assert_eq!(null(2, &[3]), []);
}

#[test]
#[ignore = "test-all: 240 searches"]
fn matrix_is_right_in_20_of_20_on_two_and_three_settings() {
    assert_eq!(planted(20, &[2, 3], false), []);
}

#[test]
#[ignore = "test-all: 240 searches"]
fn matrix_is_right_in_20_of_20_on_four_and_five_settings() {
    assert_eq!(planted(20, &[4, 5], false), []);
}

#[test]
#[ignore = "test-all: 240 searches"]
fn matrix_is_right_in_20_of_20_with_swap_among_two_and_four_settings() {
    assert_eq!(planted(20, &[2, 4], true), []);
}

#[test]
#[ignore = "test-all: 80 searches"]
fn matrix_recommends_nothing_in_20_of_20_without_any_effect() {
    assert_eq!(null(20, &[2, 3, 4, 5]), []);
}
