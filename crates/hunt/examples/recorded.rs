//! Compares the search with random sampling on real trials: draws random candidates, whose trials are recorded once,
//! and replays hunts on these records.
//!
//! ```sh
//! cargo run --release -p pagetide-hunt --example recorded -- draw space.toml 400 > table.toml
//! pagetide run table.toml --source debian:6.12 --vs patch=my.patch --seeds 1 --observe=none --store here
//! cargo run --release -p pagetide-hunt --example recorded -- met space.toml 400 here regressed base my > met.toml
//! pagetide run met.toml --source debian:6.12 --vs patch=my.patch --seeds 8 --first-seed 101 --observe=none --store here
//! cargo run --release -p pagetide-hunt --example recorded -- replay space.toml 400 here regressed base my
//! ```
//!
//! The space must have one machine. Without the name of a second variant, trials of one variant are judged. In a
//! replayed hunt, a candidate can only be one of the table: drawing takes any of them, and changing or crossing takes
//! one of those that differ in the fewest traits. That hinders the search, which cannot take small steps. Machines of
//! neighbouring sizes are not tried.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use pagetide_campaign::RunError;
use pagetide_hunt::{
    Budget, Evidence, Examiner, Extent, Goal, Guidance, Outcome, Plan, Question, Space, Workloads,
    hunt,
};
use pagetide_reference::Rng;
use pagetide_store::{Filter, Store};
use pagetide_workload::Workload;

/// Number of hunts of each kind, with seeds from 1.
const HUNTS: u64 = 100;
/// Number of candidates that differ from a parent in the fewest traits, of which one is taken as its child.
const NEAR: usize = 8;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn fail<T>(why: &str) -> Result<T> {
    Err(why.into())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["draw", space, count] => {
            let table = Table::drawn(space, count)?;
            print!(
                "{}",
                Table::campaign(&table.points.iter().collect::<Vec<_>>())
            );
        }
        ["met", space, count, store, goal, variants @ ..] => {
            let mut table = Table::drawn(space, count)?;
            table.read(store, goal, variants)?;
            let met = table.points.iter().filter(|point| {
                let outcome = table.outcomes.get(&(point.canonical(), 1));
                outcome.is_some_and(|outcome| outcome.holds)
            });
            print!("{}", Table::campaign(&met.collect::<Vec<_>>()));
        }
        ["replay", space, count, store, goal, variants @ ..] => {
            let mut table = Table::drawn(space, count)?;
            table.read(store, goal, variants)?;
            table.replay()?;
        }
        _ => {
            return fail(
                "give draw SPACE COUNT, or met or replay SPACE COUNT STORE GOAL VARIANT [HUNTED]",
            );
        }
    }
    Ok(())
}

/// Random candidates with the recorded outcomes of their trials.
struct Table {
    space: Workloads,
    points: Vec<Workload>,
    traits: Vec<Vec<String>>,
    goal: Goal,
    /// Number of trials of one measurement.
    each: u64,
    /// Outcome by canonical workload and seed.
    outcomes: BTreeMap<(String, u64), Outcome>,
}

impl Table {
    /// Draws `count` different candidates of the space in a file, the same each time.
    fn drawn(space: &str, count: &str) -> Result<Self> {
        let extent = Extent::from_toml(&std::fs::read_to_string(space)?)?;
        if extent.memory.len() * extent.swap.len() * extent.files_on.len() * extent.fs.len() != 1 {
            return fail("give a space with one machine");
        }
        let count: usize = count.parse()?;
        let space = Workloads::new(extent);
        let mut rng = Rng::stream(1, "recorded");
        let mut points: Vec<Workload> = Vec::new();
        while points.len() < count {
            let point = space.random(&mut rng);
            if points
                .iter()
                .all(|other| other.canonical() != point.canonical())
            {
                points.push(point);
            }
        }
        let traits = points.iter().map(|point| space.traits(point)).collect();
        Ok(Self {
            space,
            points,
            traits,
            goal: Goal::Regressed,
            each: 2,
            outcomes: BTreeMap::new(),
        })
    }

    /// Returns a campaign file that measures these candidates.
    fn campaign(points: &[&Workload]) -> String {
        let machine = points.first().and_then(|point| point.machine.clone());
        let machine = machine.unwrap_or_default();
        let mut text = format!(
            "name = \"recorded\"\nmemory = \"{}\"\nswap = \"{}\"\n",
            machine.memory.unwrap_or_default(),
            machine.swap.unwrap_or_default(),
        );
        if let Some(size) = machine.swap_size {
            let _ = writeln!(text, "swap-size = \"{size}\"");
        }
        if let Some(device) = machine.files_on {
            let _ = writeln!(text, "files-on = \"{device}\"");
        }
        if let Some(fs) = machine.fs {
            let _ = writeln!(text, "fs = \"{fs}\"");
        }
        text += "\n[[variant]]\nname = \"base\"\nkernel = \"debian:bookworm/6.12\"\n";
        for point in points {
            let _ = write!(
                text,
                "\n[[scenario]]\nname = \"workload\"\nprimary = [\"time\"]\nparams = {{ case = \"\", workload = '{}' }}\n",
                point.canonical()
            );
        }
        text
    }

    /// Reads the outcomes of all candidates from the records of a store.
    fn read(&mut self, store: &str, goal: &str, variants: &[&str]) -> Result<()> {
        self.goal = goal.parse()?;
        if self.goal.seeds() > 1 || variants.is_empty() || variants.len() > 2 {
            return fail("give a goal of one seed, and one or two variants");
        }
        self.each = variants.len() as u64;
        let store = Store::open(Path::new(store))?;
        let filter = Filter {
            scenario: Some("workload".to_owned()),
            ..Filter::default()
        };
        let mut found: BTreeMap<(String, u64), BTreeMap<usize, Evidence>> = BTreeMap::new();
        for row in store.select(&filter)? {
            let Some(index) = variants.iter().position(|name| *name == row.variant.name) else {
                continue;
            };
            let record = store.load(&row.id)?.into_record();
            let Some(text) = record.subject.params.get("workload").cloned() else {
                continue;
            };
            let trials = found.entry((text, row.seed)).or_default();
            trials.insert(index, Evidence::of(&record));
        }
        for (key, trials) in found {
            let own = |index| trials.get(&index).map(std::slice::from_ref);
            let outcome = match (own(variants.len() - 1), own(0)) {
                (Some(hunted), Some(other)) if variants.len() == 2 => {
                    self.goal.measure(hunted, other)
                }
                (Some(hunted), _) if variants.len() == 1 => self.goal.measure(hunted, &[]),
                _ => continue,
            };
            self.outcomes.insert(key, outcome);
        }
        let known = |point: &&Workload| self.outcomes.contains_key(&(point.canonical(), 1));
        let before = self.points.len();
        let points: Vec<Workload> = self.points.iter().filter(known).cloned().collect();
        self.points = points;
        self.traits = self
            .points
            .iter()
            .map(|point| self.space.traits(point))
            .collect();
        eprintln!("{} of {before} candidates have records", self.points.len());
        Ok(())
    }

    /// Replays hunts with and without guidance, and prints the trials to the first find of each.
    fn replay(&self) -> Result<()> {
        let held = |point: &&Workload| {
            let seeds = (101..109).filter_map(|seed| self.outcomes.get(&(point.canonical(), seed)));
            let holds = seeds.clone().filter(|outcome| outcome.holds).count();
            holds >= 6 && seeds.clone().all(|outcome| !outcome.opposite)
        };
        let met = self.points.iter().filter(|point| {
            let first = self.outcomes.get(&(point.canonical(), 1));
            first.is_some_and(|outcome| outcome.holds)
        });
        println!(
            "{} candidates, the goal holds for {} with the first seed and for {} with fresh seeds",
            self.points.len(),
            met.clone().count(),
            met.clone().filter(held).count()
        );
        for point in met.clone().filter(held) {
            println!("  {}", self.space.label(point));
        }
        let space = Recorded::new(self);
        for guidance in [Guidance::Random, Guidance::Guided] {
            let mut all = Vec::new();
            for seed in 1..=HUNTS {
                let plan = Plan {
                    goal: self.goal,
                    budget: Budget::Trials(self.points.len() as u64 * self.each * 4),
                    seed,
                    most: 1,
                    guidance,
                };
                let mut examiner = Replay(self);
                let account = hunt(&space, &plan, &mut examiner, &mut |_, _| {})?;
                all.push(account.found.first().map(|find| find.after));
            }
            all.sort_unstable_by_key(|after| after.unwrap_or(u64::MAX));
            let of = |quarter: usize| {
                let after = all[(all.len() - 1) * quarter / 4];
                after.map_or("never".to_owned(), |after| after.to_string())
            };
            println!(
                "{guidance:?}: trials to the first find: {} in half of {HUNTS} hunts, {} in a quarter, {} in three quarters",
                of(2),
                of(1),
                of(3)
            );
        }
        Ok(())
    }
}

/// The recorded candidates as a space, whose points are their indices.
struct Recorded<'a> {
    table: &'a Table,
    /// For each two candidates, the number of traits that only one of them has.
    apart: Vec<Vec<usize>>,
}

impl<'a> Recorded<'a> {
    fn new(table: &'a Table) -> Self {
        let sets: Vec<BTreeSet<&String>> = table
            .traits
            .iter()
            .map(|one| one.iter().collect())
            .collect();
        let of = |a: &BTreeSet<&String>| {
            let each = sets.iter();
            each.map(|b| a.symmetric_difference(b).count()).collect()
        };
        let apart = sets.iter().map(of).collect();
        Self { table, apart }
    }

    /// Returns one of the candidates whose traits differ the least from those of `parents`, other than the parents.
    fn near(&self, parents: &[usize], rng: &mut Rng) -> usize {
        let apart = |index: &usize| {
            parents
                .iter()
                .map(|parent| self.apart[*parent][*index])
                .sum::<usize>()
        };
        let mut all: Vec<usize> = (0..self.apart.len())
            .filter(|one| !parents.contains(one))
            .collect();
        all.sort_by_key(apart);
        all.truncate(NEAR);
        let at = usize::try_from(rng.below(all.len() as u64)).unwrap_or(0);
        all.get(at).copied().unwrap_or(parents[0])
    }

    fn point(&self, index: usize) -> &Workload {
        &self.table.points[index]
    }
}

/// Takes outcomes from the records instead of running trials. Stops the hunt if a record is missing.
struct Replay<'a>(&'a Table);

impl Examiner<usize> for Replay<'_> {
    fn trials_each(&self) -> u64 {
        self.0.each
    }

    fn examine(
        &mut self,
        asked: &[Question<usize>],
    ) -> std::result::Result<Option<Vec<Outcome>>, RunError> {
        let one = |question: &Question<usize>| {
            let key = (self.0.points[question.point].canonical(), question.seed);
            self.0.outcomes.get(&key).cloned()
        };
        Ok(asked.iter().map(one).collect())
    }
}

impl Space for Recorded<'_> {
    type Point = usize;

    fn first(&self, _: &mut Rng) -> Vec<usize> {
        Vec::new()
    }

    fn random(&self, rng: &mut Rng) -> usize {
        usize::try_from(rng.below(self.apart.len() as u64)).unwrap_or(0)
    }

    fn mutated(&self, point: &usize, rng: &mut Rng) -> usize {
        self.near(&[*point], rng)
    }

    fn crossed(&self, a: &usize, b: &usize, rng: &mut Rng) -> usize {
        self.near(&[*a, *b], rng)
    }

    fn simpler(&self, _: &usize) -> Vec<usize> {
        Vec::new()
    }

    fn resized(&self, _: &usize, _: u64) -> Option<usize> {
        None
    }

    fn region(&self, point: &usize) -> String {
        self.table.space.region(self.point(*point))
    }

    fn traits(&self, point: &usize) -> Vec<String> {
        self.table.traits[*point].clone()
    }

    fn label(&self, point: &usize) -> String {
        self.table.space.label(self.point(*point))
    }
}
