//! The shipped campaigns: `list campaigns`, `plan` and `run` state the same number of trials for each.

use std::path::Path;
use std::sync::OnceLock;

use pagetide_arena::{Arena, ArenaError, PreparedTrial, Progress, Trial, TrialResult};
use pagetide_campaign::{
    Campaign, Event, EventListener, Options, ProgramPlace, Request, file, forecast, run,
};
use pagetide_lab::vocabulary;
use pagetide_quantity::Bytes;
use pagetide_record::{ArenaKind, KernelId, Maker, RecordWriter};
use pagetide_store::Store;

/// An arena that prepares every trial but runs none.
struct Nowhere;

impl Arena for Nowhere {
    fn kind(&self) -> ArenaKind {
        ArenaKind::Exact
    }

    fn prepare(&self, trial: &Trial) -> Result<PreparedTrial, ArenaError> {
        let kernel = KernelId {
            source: trial.variant.kernel.clone(),
            ..KernelId::default()
        };
        let subject = trial.subject(kernel, Bytes::from_mib(256));
        Ok(PreparedTrial::new(trial.clone(), subject, ()))
    }

    fn run(
        &self,
        _: &PreparedTrial,
        _: &mut RecordWriter,
        _: &dyn Progress,
    ) -> Result<TrialResult, ArenaError> {
        Err(ArenaError::Stopped)
    }
}

/// Stores the number of trials that a run announces, and then stops the run.
#[derive(Default)]
struct Announced {
    total: OnceLock<usize>,
}

impl EventListener for Announced {
    fn event(&self, event: &Event<'_>) {
        if let Event::Planned(tally) = event {
            let _ = self.total.set(tally.total);
        }
    }

    fn is_stopped(&self) -> bool {
        self.total.get().is_some()
    }
}

/// Returns the number of trials according to `plan`: the sum over the cells, and the total in the head of the plan.
fn planned(campaign: &Campaign) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let mut sum = 0;
    let mut take = |cell: pagetide_campaign::CellForecast| sum += cell.trials;
    let whole = forecast(campaign, &Nowhere, &store, None, false, &[], &mut take).unwrap();
    (sum, whole.trials)
}

/// Returns the number of trials that `run` announces at its start.
fn announced(campaign: &Campaign) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let watch = Announced::default();
    let options = Options {
        jobs: Some(1),
        fresh: false,
        keep_going: false,
        shard: None,
        elsewhere: None,
        command: "pagetide run".to_owned(),
        maker: &|_| Maker::default(),
    };
    let outcome = run(campaign, &Nowhere, &mut store, &options, &watch).unwrap();
    assert!(outcome.stopped && outcome.tally.ran == 0);
    watch.total.into_inner().unwrap()
}

#[test]
fn list_plan_and_run_count_the_same_trials_for_every_campaign_that_comes_along() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    let listed = file::find(&folder, &vocabulary());
    assert!(listed.len() >= 17, "{}", listed.len());
    for (path, campaign) in listed {
        let count = campaign.trial_count();
        // The request is read as `plan` and `run` read it. The paths of a program's files do not change the number of
        // trials.
        let words = [path.display().to_string()];
        let mut read = Request::default().campaign(&words, &vocabulary()).unwrap();
        let place = ProgramPlace {
            command: vec!["program".to_owned()],
            ..ProgramPlace::default()
        };
        for scenario in &mut read.scenarios {
            scenario.settle(&place).unwrap();
        }
        assert_eq!(planned(&read), (count, count), "{}", path.display());
        assert_eq!(announced(&read) as u64, count, "{}", path.display());
    }
}
