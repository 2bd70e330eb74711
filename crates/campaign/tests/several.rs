//! Tests of trials that run without a plan, requested one after another by a search.

use pagetide_arena::{Trial, VariantSpec};
use pagetide_campaign::{EventListener, RunError, Site, Tried};
use pagetide_record::Invalid;
use pagetide_store::Store;

use crate::common::{Act, Diary, ScriptedArena, options};

fn trial(kernel: &str, seed: u64) -> Trial {
    Trial {
        scenario: "linear".into(),
        seed,
        variant: VariantSpec {
            name: kernel.into(),
            kernel: kernel.into(),
            ..VariantSpec::default()
        },
        ..Trial::default()
    }
}

fn go(
    arena: &ScriptedArena,
    folder: &std::path::Path,
    jobs: usize,
    watch: &dyn EventListener,
    trials: &[Trial],
) -> Result<Option<Vec<Tried>>, RunError> {
    let mut store = Store::open(folder)?;
    let options = pagetide_campaign::Options {
        jobs: Some(jobs),
        ..options()
    };
    let mut site = Site {
        arena,
        store: &mut store,
        options: &options,
        watch,
    };
    site.several("search", trials)
}

/// Returns seed and digest of each record, or the reason why the trial was refused.
fn told(tried: &[Tried]) -> Vec<String> {
    let one = |tried: &Tried| match tried {
        Tried::Ran(record) => format!("{} {}", record.subject.seed, record.digest),
        Tried::Refused(why) => why.clone(),
    };
    tried.iter().map(one).collect()
}

#[test]
fn each_trial_runs_once_and_its_result_stands_at_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        refuses: Some("old".into()),
        ..ScriptedArena::default()
    };
    let trials = [
        trial("6.12", 4),
        trial("6.12", 2),
        trial("old", 1),
        trial("6.12", 4),
    ];
    let nobody = Diary::default();
    let first = go(&arena, dir.path(), 2, &nobody, &trials)
        .unwrap()
        .unwrap();
    let first = told(&first);
    assert!(
        first[0].starts_with("4 ") && first[1].starts_with("2 "),
        "{first:?}"
    );
    assert!(first[2].contains("has no CONFIG_SWAP"), "{first:?}");
    assert_eq!(first[3], first[0]);
    assert_eq!(arena.begun().len(), 2, "equal trials run once");
    // A trial that has a record does not run again, even if it is requested together with other trials.
    let more = [trial("6.12", 2), trial("6.12", 9), trial("6.12", 4)];
    let more = go(&arena, dir.path(), 1, &nobody, &more).unwrap().unwrap();
    let more = told(&more);
    assert_eq!((&more[0], &more[2]), (&first[1], &first[0]));
    assert_eq!(arena.begun().len(), 3);
}

#[test]
fn an_invalid_trial_has_its_record_and_a_broken_arena_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut arena = ScriptedArena::default();
    let acts = [
        (1, Act::Invalid(Invalid::NoReclaim)),
        (2, Act::Break("no memory".into())),
    ];
    arena.deeds = acts
        .into_iter()
        .map(|(seed, act)| (("6.12".to_owned(), seed), act))
        .collect();
    let nobody = Diary::default();
    let one = go(&arena, dir.path(), 1, &nobody, &[trial("6.12", 1)]);
    let one = one.unwrap().unwrap();
    assert!(matches!(&one[0], Tried::Ran(record) if !record.is_valid()));
    let error = go(&arena, dir.path(), 1, &nobody, &[trial("6.12", 2)]).unwrap_err();
    assert_eq!(error.to_string(), "no memory");
}

#[test]
fn a_request_to_stop_ends_the_trials_and_keeps_what_is_done() {
    struct Now;
    impl EventListener for Now {
        fn event(&self, _: &pagetide_campaign::Event<'_>) {}
        fn is_stopped(&self) -> bool {
            true
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    let nobody = Diary::default();
    go(&arena, dir.path(), 1, &nobody, &[trial("6.12", 1)]).unwrap();
    let trials = [trial("6.12", 1), trial("6.12", 2)];
    assert!(go(&arena, dir.path(), 1, &Now, &trials).unwrap().is_none());
    assert!(
        go(&arena, dir.path(), 1, &Now, &trials[..1])
            .unwrap()
            .is_some()
    );
    assert_eq!(arena.begun().len(), 1);
}
