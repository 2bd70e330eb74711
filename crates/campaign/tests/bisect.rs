//! Tests of the search for the first bad version, in a scripted arena.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::{Act, Diary, ScriptedArena, options};
use pagetide_campaign::bisect::{
    Audience, Bisect, BisectError, BisectOutcome, BisectRequest, History, Supplied, Version,
    bisect, predict, question,
};
use pagetide_campaign::{
    Campaign, EventListener, Nobody, Options, ScenarioSpec, Site, Until, Vocabulary, maker,
};
use pagetide_compare::bisected::BisectResult;
use pagetide_quantity::Nanos;
use pagetide_record::Invalid;
use pagetide_store::Store;
use pagetide_verdict::bisect::Mark;

fn versions(count: usize) -> Vec<Version> {
    (0..count)
        .map(|at| Version {
            id: format!("{at:040}"),
            name: format!("v{at}"),
            what: format!("change number {at}"),
        })
        .collect()
}

fn asked(history: History, seeds: u32) -> Bisect {
    let campaign = Campaign {
        name: "bisect-test".into(),
        seed: 1,
        variants: vec![pagetide_arena::VariantSpec::default()],
        scenarios: vec![ScenarioSpec {
            name: "linear".into(),
            primary: Some(vec!["run".into()]),
            ..ScenarioSpec::default()
        }],
        ..crate::common::campaign(seeds)
    };
    Bisect {
        campaign,
        metric: "run".into(),
        history,
    }
}

/// An arena in which versions from number `culprit` on take 30 % longer.
fn arena(count: usize, culprit: usize) -> ScriptedArena {
    ScriptedArena {
        effect: (culprit..count).map(|at| (format!("v{at}"), 1.3)).collect(),
        tells_images: true,
        ..ScriptedArena::default()
    }
}

struct Bench<'a> {
    arena: &'a ScriptedArena,
    folder: &'a Path,
    /// Indices of the versions that cannot be built.
    broken: BTreeSet<usize>,
    /// Versions that have the same image as another version: index of the other version, by index of the version.
    same: BTreeMap<usize, usize>,
    supplied: RefCell<Vec<usize>>,
}

impl<'a> Bench<'a> {
    fn new(arena: &'a ScriptedArena, folder: &'a Path) -> Self {
        Self {
            arena,
            folder,
            broken: BTreeSet::new(),
            same: BTreeMap::new(),
            supplied: RefCell::default(),
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.join("logs/bisect.log")
    }

    fn go(&self, asked: &Bisect, watch: &dyn EventListener) -> Result<BisectOutcome, BisectError> {
        let mut store = Store::open(&self.folder.join("store")).unwrap();
        let options = Options {
            jobs: Some(2),
            maker: &maker,
            ..options()
        };
        let mut supply = |place: usize| {
            self.supplied.borrow_mut().push(place);
            Ok(if self.broken.contains(&place) {
                Supplied::Skip("it does not compile".into())
            } else {
                let image = self.same.get(&place).unwrap_or(&place);
                Supplied::Kernel(format!("kernel{image}"))
            })
        };
        let logs = [self.log()];
        let site = Site {
            arena: self.arena,
            store: &mut store,
            options: &options,
            watch,
        };
        let audience = Audience {
            logs: &logs,
            say: &|_| {},
        };
        bisect(asked, &mut supply, site, &audience)
    }

    fn found(&self, asked: &Bisect) -> BisectResult {
        match self.go(asked, &Nobody).unwrap() {
            BisectOutcome::Found(found) => *found,
            other => panic!("{other:?}"),
        }
    }
}

fn names(versions: &[Version]) -> Vec<&str> {
    versions
        .iter()
        .map(|version| version.name.as_str())
        .collect()
}

#[test]
fn every_culprit_of_a_line_is_found_with_its_effect_before_and_after() {
    for culprit in 1..9 {
        let folder = tempfile::tempdir().unwrap();
        let arena = arena(9, culprit);
        let bench = Bench::new(&arena, folder.path());
        let found = bench.found(&asked(History::line(versions(9)), 8));
        assert_eq!(names(&found.first_bad), [format!("v{culprit}")]);
        assert_eq!(found.before.name, format!("v{}", culprit - 1));
        assert_eq!((found.candidates, found.steps.len()), (8, 4));
        let row = &found.comparison.cells[0].metrics[0];
        let effect = row.judgements[0].as_ref().unwrap().effect.unwrap();
        assert!((effect.estimate - 1.3).abs() < 0.01, "{effect:?}");
        let margin = found.margin.unwrap();
        assert!((margin - 0.14).abs() < 0.01, "{margin}");
        let log = std::fs::read_to_string(bench.log()).unwrap();
        assert!(log.starts_with("git bisect start\n# bad: ["), "{log}");
        let last = format!("# first bad commit: [{culprit:040}] change number {culprit}\n");
        assert!(log.ends_with(&last), "{log}");
    }
}

#[test]
fn a_small_drift_on_the_way_is_not_the_culprit() {
    let folder = tempfile::tempdir().unwrap();
    let mut arena = arena(9, 6);
    // The versions v3 to v5 take 4 % longer than the good one. That is significant, but much less than the difference
    // between good and bad.
    for at in 3..6 {
        arena.effect.insert(format!("v{at}"), 1.04);
    }
    let found = Bench::new(&arena, folder.path()).found(&asked(History::line(versions(9)), 8));
    assert_eq!(names(&found.first_bad), ["v6"]);
}

#[test]
fn what_does_not_build_or_boot_or_run_is_skipped_and_a_culprit_among_them_makes_a_range() {
    let folder = tempfile::tempdir().unwrap();
    let mut arena = arena(12, 8);
    arena.refuses = Some("kernel6".into());
    for seed in 1..=8 {
        let out_of_memory = Invalid::OutOfMemory {
            process: "x".into(),
            after: Nanos(1),
        };
        arena
            .deeds
            .insert(("v7".into(), seed), Act::Invalid(out_of_memory));
    }
    let mut bench = Bench::new(&arena, folder.path());
    bench.broken = BTreeSet::from([5]);
    let found = bench.found(&asked(History::line(versions(12)), 8));
    assert_eq!(names(&found.first_bad), ["v5", "v6", "v7", "v8"]);
    assert_eq!(found.before.name, "v4");
    let why = |name: &str| {
        let step = found.steps.iter().find(|step| step.version.name == name);
        let step = step.unwrap_or_else(|| panic!("{name} was not tried"));
        assert_eq!(step.mark, Mark::Skip);
        step.why.clone().unwrap()
    };
    assert_eq!(why("v5"), "it does not compile");
    assert!(why("v6").contains("CONFIG_SWAP"));
    assert!(why("v7").contains("memory"), "{}", why("v7"));
    let log = std::fs::read_to_string(bench.log()).unwrap();
    assert!(log.contains("# only skipped commits left to test\n# possible first bad commit"));
}

#[test]
fn equal_images_share_their_trials() {
    let folder = tempfile::tempdir().unwrap();
    let arena = arena(9, 7);
    let mut bench = Bench::new(&arena, folder.path());
    // The patches only change comments, so v1 to v6 have the image of the good version.
    bench.same = (1..7).map(|at| (at, 0)).collect();
    let found = bench.found(&asked(History::line(versions(9)), 8));
    assert_eq!(names(&found.first_bad), ["v7"]);
    let kernels: BTreeSet<String> = arena
        .begun()
        .iter()
        .map(|trial| trial.variant.kernel.clone())
        .collect();
    assert_eq!(kernels.len(), 3, "{kernels:?}");
    let spared = found.steps.iter().filter(|step| step.why.is_some()).count();
    assert!(spared >= 2, "{:?}", found.steps);
}

#[test]
fn good_and_bad_that_do_not_surely_differ_are_nothing_to_bisect() {
    let folder = tempfile::tempdir().unwrap();
    let arena = arena(0, 0);
    let mut bench = Bench::new(&arena, folder.path());
    let ends = asked(History::line(versions(9)), 12);
    let outcome = bench.go(&ends, &Nobody).unwrap();
    assert!(
        matches!(&outcome, BisectOutcome::Nothing(why) if why.contains("nothing to bisect") && why.contains("v8"))
    );
    assert_eq!(
        *bench.supplied.borrow(),
        [0, 8],
        "only good and bad are tried"
    );
    bench.same.insert(8, 0);
    let outcome = bench.go(&ends, &Nobody).unwrap();
    assert!(matches!(&outcome, BisectOutcome::Nothing(why) if why.contains("to the last byte")));
    bench.same.clear();
    bench.broken.insert(8);
    let error = bench.go(&ends, &Nobody).unwrap_err();
    assert!(
        matches!(&error, BisectError::End { which: "bad", .. }),
        "{error}"
    );
}

#[test]
fn a_search_that_is_stopped_anywhere_goes_on_to_the_same_end_and_runs_nothing_twice() {
    let whole_folder = tempfile::tempdir().unwrap();
    let line = asked(History::line(versions(17)), 8);
    let undisturbed = arena(17, 11);
    let whole = Bench::new(&undisturbed, whole_folder.path()).found(&line);
    let folder = tempfile::tempdir().unwrap();
    let arena = arena(17, 11);
    let bench = Bench::new(&arena, folder.path());
    let mut rounds = 0;
    let found = loop {
        rounds += 1;
        assert!(rounds < 60);
        let diary = Diary {
            stop_after: Some(5),
            ..Diary::default()
        };
        match bench.go(&line, &diary).unwrap() {
            BisectOutcome::Stopped(_) => {}
            BisectOutcome::Found(found) => break *found,
            other @ BisectOutcome::Nothing(_) => panic!("{other:?}"),
        }
    };
    assert!(rounds > 5, "{rounds}");
    assert_eq!(found.first_bad, whole.first_bad);
    assert_eq!(found.steps, whole.steps);
    let mut begun: Vec<_> = arena
        .begun()
        .into_iter()
        .map(|trial| {
            (
                trial.variant.kernel,
                trial.seed,
                format!("{:?}", trial.pass),
            )
        })
        .collect();
    let all = begun.len();
    begun.sort();
    begun.dedup();
    // A stopped trial has no record and is started again. In each round, at most two trials run in parallel.
    assert!(all - begun.len() <= 2 * rounds, "{all} of {}", begun.len());
    assert_eq!(begun.len(), undisturbed.begun().len());
}

#[test]
fn a_question_has_one_cell_one_metric_and_a_name_of_its_own() {
    let ask = |metric: Option<&str>, bad: &str, seeds: Until| {
        let mut campaign = asked(History::default(), 8).campaign;
        campaign.scenarios[0].primary = None;
        campaign.sampling.until = seeds;
        let request = BisectRequest {
            good: "a".into(),
            bad: bad.into(),
            metric: metric.map(str::to_owned),
            ..BisectRequest::default()
        };
        let metric = question(&mut campaign, &request, "run", &Vocabulary::default())?;
        Ok::<_, BisectError>((metric, campaign))
    };
    let (metric, first) = ask(None, "b", Until::Enough(8)).unwrap();
    assert_eq!((metric.as_str(), first.sampling.until.cap()), ("run", 32));
    assert_eq!(first.scenarios[0].primary, Some(vec!["run".into()]));
    let (_, other) = ask(None, "c", Until::Enough(8)).unwrap();
    assert_ne!(first.name, other.name);
    assert!(first.name.starts_with("bisect-linear-"), "{}", first.name);
    assert_eq!(
        ask(None, "b", Until::Blocks(12))
            .unwrap()
            .1
            .sampling
            .until
            .cap(),
        12
    );
    let error = ask(Some("rnu"), "b", Until::Enough(8)).unwrap_err();
    assert!(
        error.is_user_error() && error.to_string().contains("rnu"),
        "{error}"
    );
    let mut wide = asked(History::default(), 8).campaign;
    wide.variants.push(pagetide_arena::VariantSpec::default());
    let request = BisectRequest::default();
    let error = question(&mut wide, &request, "run", &Vocabulary::default()).unwrap_err();
    assert!(matches!(error, BisectError::Several { .. }), "{error}");
}

#[test]
fn the_cost_is_said_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let arena = ScriptedArena::default();
    let search = asked(History::line(versions(17)), 32);
    let end = |name: &str| pagetide_arena::VariantSpec {
        name: name.into(),
        kernel: name.into(),
        ..Default::default()
    };
    let ends = vec![end("a"), end("b")];
    let text = predict(&search, ends, &[], &arena, &store, Some(2)).unwrap();
    assert!(
        text.starts_with("15 versions between good and bad: about 4 steps of 8 seeds (up to 32"),
        "{text}"
    );
    assert!(arena.begun().is_empty());
}
