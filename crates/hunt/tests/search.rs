//! Tests that the search finds planted faults sooner than random sampling, finds nothing in a kernel without faults,
//! and is reproducible.

use pagetide_campaign::RunError;
use pagetide_hunt::{
    Account, Budget, Examiner, Extent, Goal, Guidance, News, Outcome, Plan, Question, Share, Space,
    Workloads, hunt,
};
use pagetide_quantity::Bytes;
use pagetide_workload::Workload;

use crate::kernel::{FAULTS, Table};

fn plan(goal: Goal, seed: u64, trials: u64, guidance: Guidance) -> Plan {
    Plan {
        goal,
        budget: Budget::Trials(trials),
        seed,
        most: 1,
        guidance,
    }
}

fn space() -> Workloads {
    Workloads::new(Extent::default())
}

fn go(plan: &Plan, table: &mut Table) -> Account<Workload> {
    hunt(&space(), plan, table, &mut |_, _| {}).unwrap()
}

/// Number of trials up to the first finding; `most` if nothing was found.
fn first(fault: &'static str, seed: u64, most: u64, guidance: Guidance) -> u64 {
    let goal = if fault == FAULTS[0] {
        Goal::Killed
    } else {
        Goal::Regressed
    };
    let mut table = Table::new(goal, Some(fault), true);
    let account = go(&plan(goal, seed, most, guidance), &mut table);
    account.found.first().map_or(most, |find| find.after)
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all[all.len() / 2]
}

/// Asserts that the guided search needs at most half the trials of random sampling, as the sum over faults of the
/// medians over `seeds` seeds.
fn assert_guided_is_better(faults: &[&'static str], seeds: u64) {
    const MAX: u64 = 4000;
    let sum = |guidance| -> u64 {
        let of = |fault: &&'static str| {
            median(
                (1..=seeds)
                    .map(|seed| first(fault, seed, MAX, guidance))
                    .collect(),
            )
        };
        faults.iter().map(of).sum()
    };
    let (guided, random) = (sum(Guidance::Guided), sum(Guidance::Random));
    assert!(2 * guided <= random, "{guided} and {random} trials");
}

#[test]
fn the_search_finds_a_fault_in_half_the_trials_of_random_sampling() {
    assert_guided_is_better(&["protection-lost"], 5);
}

#[test]
#[ignore = "test-all"]
fn the_search_finds_seven_faults_in_half_the_trials_of_random_sampling() {
    assert_guided_is_better(&FAULTS, 10);
}

fn assert_nothing_is_found(trials: u64) {
    for goal in [Goal::Regressed, Goal::Unstable, Goal::Killed, Goal::Stall] {
        let mut table = Table::new(goal, None, true);
        let account = go(&plan(goal, 5, trials, Guidance::Guided), &mut table);
        assert!(account.found.is_empty(), "{goal}: {:?}", account.found);
        assert!(account.trials >= trials && !account.is_stopped);
        let candidates: u64 = account
            .regions
            .values()
            .map(|looked| looked.candidates)
            .sum();
        assert_eq!(candidates, account.candidates);
    }
}

#[test]
fn nothing_is_found_where_the_variants_do_not_differ() {
    assert_nothing_is_found(200);
}

#[test]
#[ignore = "test-all"]
fn nothing_is_found_in_2000_trials_where_the_variants_do_not_differ() {
    assert_nothing_is_found(2000);
}

/// A kernel on which the goal holds with every seed, on machines of some sizes.
struct OnSizes(fn(Bytes) -> bool);

impl Examiner<Workload> for OnSizes {
    fn trials_each(&self) -> u64 {
        2
    }

    fn examine(&mut self, asked: &[Question<Workload>]) -> Result<Option<Vec<Outcome>>, RunError> {
        let one = |question: &Question<Workload>| {
            let machine = question.point.machine.clone().unwrap();
            let holds = self.0(machine.memory.unwrap().bytes());
            Outcome {
                holds,
                score: if holds { 1.5 } else { 0.0 },
                reach: if holds { 1.5 } else { 0.8 },
                ..Outcome::default()
            }
        };
        Ok(Some(asked.iter().map(one).collect()))
    }
}

#[test]
fn a_find_of_a_comparison_holds_at_a_neighbouring_size_even_if_the_budget_is_used_up() {
    let extent = Extent::from_toml("memory = [\"16M\"]\nswap = [\"zram\"]").unwrap();
    let space = Workloads::new(extent);
    // The first generation uses up the smaller budget.
    for budget in [24, 200] {
        let found = |goal, mut kernel| {
            let plan = plan(goal, 1, budget, Guidance::Guided);
            let account = hunt(&space, &plan, &mut kernel, &mut |_, _| {}).unwrap();
            assert!(account.found.is_empty() == (account.chance > 0));
            account.found.len()
        };
        assert_eq!(found(Goal::Regressed, OnSizes(|size| size.0 <= 1 << 24)), 1);
        assert_eq!(found(Goal::Regressed, OnSizes(|size| size.0 >= 1 << 24)), 1);
        assert_eq!(found(Goal::Regressed, OnSizes(|size| size.0 == 1 << 24)), 0);
        assert_eq!(found(Goal::Killed, OnSizes(|size| size.0 == 1 << 24)), 1);
    }
}

#[test]
fn a_hunt_that_was_stopped_asks_the_same_again_and_goes_on() {
    let plan = plan(Goal::Regressed, 3, 600, Guidance::Guided);
    let mut whole = Table::new(Goal::Regressed, Some(FAULTS[1]), true);
    let account = go(&plan, &mut whole);
    let mut part = Table::new(Goal::Regressed, Some(FAULTS[1]), true);
    part.stop_after = Some(whole.asked.len() / 2);
    assert!(go(&plan, &mut part).is_stopped);
    assert_eq!(part.asked[..], whole.asked[..part.asked.len()]);
    let mut again = Table::new(Goal::Regressed, Some(FAULTS[1]), true);
    let after = go(&plan, &mut again);
    assert_eq!(again.asked, whole.asked);
    assert_eq!(
        serde_json::to_string(&after).unwrap(),
        serde_json::to_string(&account).unwrap()
    );
    let mut other = Table::new(Goal::Regressed, Some(FAULTS[1]), true);
    go(&Plan { seed: 4, ..plan }, &mut other);
    assert_ne!(other.asked, whole.asked, "another seed is another hunt");
}

#[test]
fn a_hunt_that_is_stopped_while_a_case_is_made_simpler_keeps_what_it_has() {
    let plan = plan(Goal::Regressed, 3, 600, Guidance::Guided);
    let mut whole = Table::new(Goal::Regressed, Some(FAULTS[1]), true);
    go(&plan, &mut whole);
    let mut cut = 0;
    for part in 1..16 {
        let mut table = Table::new(Goal::Regressed, Some(FAULTS[1]), true);
        table.stop_after = Some(whole.asked.len() * part / 16);
        let mut confirmed = 0;
        let account = hunt(&space(), &plan, &mut table, &mut |_, news| {
            confirmed += usize::from(matches!(news, News::Found(_)));
        });
        let account = account.unwrap();
        assert!(account.is_stopped);
        let found: u64 = account.found.iter().map(|find| 1 + find.again).sum();
        assert!(found >= confirmed as u64, "part {part}");
        cut += account
            .found
            .iter()
            .filter(|find| !find.is_smallest)
            .count();
    }
    assert!(cut > 0, "no hunt was stopped while a case was made simpler");
}

#[test]
fn a_candidate_that_some_seed_turns_round_says_so() {
    let share = |holds, opposite| Share {
        holds,
        opposite,
        tried: 8,
    };
    let said = |share| News::<'_>::Chance(share).sentence().unwrap();
    assert_eq!(
        said(share(7, 1)),
        "not found: the goal holds with 7 of 8 fresh seeds, but with 1 the other way round"
    );
    assert_eq!(
        said(share(5, 0)),
        "not found: the goal holds with only 5 of 8 fresh seeds"
    );
}

#[test]
fn every_candidate_of_a_hunt_differs_from_the_others() {
    let mut table = Table::new(Goal::Stall, None, false);
    go(&plan(Goal::Stall, 1, 250, Guidance::Guided), &mut table);
    let mut all: Vec<&String> = table.asked.iter().map(|(text, _)| text).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    // Machines are not part of the canonical text.
    assert!(all.len() * 10 >= count * 9, "{} of {count}", all.len());
    assert!(
        !space()
            .region(&space().random(&mut pagetide_reference::Rng::new(1)))
            .is_empty()
    );
}

#[test]
fn a_hunt_looks_into_all_regions_alike() {
    let space = Workloads::new(Extent {
        memory: vec!["16M".parse().unwrap(), "64M".parse().unwrap()],
        ..Extent::default()
    });
    let mut table = Table::new(Goal::Killed, None, false);
    let plan = plan(Goal::Killed, 2, 300, Guidance::Guided);
    let account = hunt(&space, &plan, &mut table, &mut |_, _| {}).unwrap();
    let regions = &account.regions;
    let fewest = regions.values().map(|looked| looked.candidates).min();
    assert_eq!(regions.len(), 18, "{regions:?}");
    // A quarter of 300 candidates goes to the regions with the fewest.
    assert!(fewest.unwrap() >= 300 / 4 / 18, "{regions:?}");
}

/// Examines workloads on a kernel on which the goal holds only with the first seed, and only for workloads that fork.
#[derive(Default)]
struct Chance {
    /// Number of candidates, and of those that fork.
    candidates: [u64; 2],
}

impl Examiner<Workload> for Chance {
    fn trials_each(&self) -> u64 {
        1
    }

    fn examine(&mut self, asked: &[Question<Workload>]) -> Result<Option<Vec<Outcome>>, RunError> {
        let outcomes = asked.iter().map(|question| {
            let is_first = question.seed == 1;
            let forks = question.point.canonical().contains("\"fork\"");
            self.candidates[0] += u64::from(is_first);
            self.candidates[1] += u64::from(is_first && forks);
            let holds = is_first && forks;
            Outcome {
                score: if holds { 1.5 } else { 0.1 },
                holds,
                ..Outcome::default()
            }
        });
        Ok(Some(outcomes.collect()))
    }
}

#[test]
#[ignore = "test-all"]
fn a_goal_that_only_chance_reaches_does_not_attract_the_search() {
    let share = |guidance| {
        let mut kernel = Chance::default();
        let plan = plan(Goal::Stall, 1, 1500, guidance);
        let account = hunt(&space(), &plan, &mut kernel, &mut |_, _| {}).unwrap();
        assert!(account.found.is_empty() && account.chance > 20);
        let [all, forks] = kernel.candidates;
        forks as f64 / all as f64
    };
    let (guided, random) = (share(Guidance::Guided), share(Guidance::Random));
    assert!(guided < 1.2 * random, "{guided} and {random}");
}
