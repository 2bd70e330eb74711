//! Tests of batches on a cluster made of threads, which loses tasks, runs them twice, and fails in the ways in which
//! clusters fail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::{Diary, ScriptedArena, campaign, contents, go, options};
use pagetide_arena::{Progress, Step, Trial, VariantSpec};
use pagetide_campaign::{
    BatchFolder, Campaign, Cluster, ClusterError, Elsewhere, EventListener, Nobody, Node, Options,
    Outcome, RunError, Site, TaskError, Tried, run, work,
};
use pagetide_record::{Maker, RecordReader};
use pagetide_store::{Filter, Store};

/// Ends a task when the job is cancelled, or after a given number of checks.
#[derive(Default)]
struct Life {
    checks_left: Mutex<Option<u32>>,
    is_cancelled: Arc<AtomicBool>,
}

impl Progress for Life {
    fn step(&self, _: Step) {}

    fn is_stopped(&self) -> bool {
        if let Some(left) = &mut *self.checks_left.lock().unwrap() {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return true;
            }
        }
        self.is_cancelled.load(Ordering::SeqCst)
    }
}

/// A cluster whose nodes are threads.
#[derive(Default)]
struct Threads {
    /// Number of times that each task is started; 0 counts as 1.
    copies: u32,
    /// Number of jobs whose tasks are lost, and number of checks after which a task of these jobs is lost.
    lost: (u32, u32),
    /// True if the nodes have another kernel under the kernel name of the campaign.
    other_kernel: bool,
    /// Error message of nodes that cannot copy a trial's files; `None` if they can.
    full: Option<String>,
    /// Wall-clock time of a trial.
    takes: Duration,
    /// Jobs submitted so far.
    jobs: Mutex<Vec<Job>>,
    submitted: AtomicU32,
}

struct Job {
    tasks: Vec<JoinHandle<()>>,
    is_cancelled: Arc<AtomicBool>,
}

impl Cluster for Threads {
    fn most_tasks(&self) -> Result<u32, ClusterError> {
        Ok(5)
    }

    fn submit(&self, folder: &Path, tasks: u32) -> Result<String, ClusterError> {
        assert!((1..=5).contains(&tasks));
        let number = self.submitted.fetch_add(1, Ordering::SeqCst);
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for task in (1..=tasks).flat_map(|task| vec![task; self.copies.max(1) as usize]) {
            let life = Life {
                checks_left: Mutex::new((number < self.lost.0).then_some(self.lost.1)),
                is_cancelled: Arc::clone(&is_cancelled),
            };
            let folder = folder.to_owned();
            let (takes, full, other) = (self.takes, self.full.clone(), self.other_kernel);
            threads.push(std::thread::spawn(move || {
                let mut arena = ScriptedArena {
                    takes,
                    tells_images: true,
                    ..ScriptedArena::default()
                };
                arena.tells_images = !other;
                let folder = BatchFolder::at(&folder).unwrap();
                let node = Node {
                    arena: &arena,
                    stage: &|_| match &full {
                        Some(why) => Err(pagetide_arena::ArenaError::broken(why.clone())),
                        None => Ok(()),
                    },
                    maker: &|_| Maker::default(),
                    progress: &life,
                };
                match work(&folder, task, &node) {
                    Ok(()) | Err(TaskError::Stopped) => {}
                    Err(error) => folder.fail(task, &error.to_string()).unwrap(),
                }
            }));
        }
        let job = Job {
            tasks: threads,
            is_cancelled,
        };
        self.jobs.lock().unwrap().push(job);
        Ok(number.to_string())
    }

    fn is_active(&self, job: &str) -> Result<bool, ClusterError> {
        let jobs = self.jobs.lock().unwrap();
        let job: usize = job.parse().unwrap();
        Ok(jobs
            .get(job)
            .is_some_and(|job| job.tasks.iter().any(|task| !task.is_finished())))
    }

    fn cancel(&self, job: &str) -> Result<(), ClusterError> {
        let jobs = self.jobs.lock().unwrap();
        jobs[job.parse::<usize>().unwrap()]
            .is_cancelled
            .store(true, Ordering::SeqCst);
        Ok(())
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(5)
    }
}

struct Bench {
    dir: tempfile::TempDir,
    campaign: Campaign,
}

impl Bench {
    fn new(seeds: u32) -> Self {
        let mut campaign = campaign(seeds);
        for variant in &mut campaign.variants {
            variant.kernel = "6.12".into();
        }
        let dir = tempfile::tempdir().unwrap();
        Self { dir, campaign }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn arena() -> ScriptedArena {
        ScriptedArena {
            tells_images: true,
            ..ScriptedArena::default()
        }
    }

    fn on(
        &self,
        cluster: &Threads,
        detach: bool,
        watch: &dyn EventListener,
    ) -> Result<Outcome, RunError> {
        let options = Options {
            elsewhere: Some(Elsewhere { cluster, detach }),
            command: "pagetide run test.toml --on threads".to_owned(),
            ..options()
        };
        let mut store = Store::open(&self.path("store")).unwrap();
        run(&self.campaign, &Self::arena(), &mut store, &options, watch)
    }

    /// Key and digest of every record of a store, sorted. Fails if a record is damaged.
    fn contents(&self, name: &str) -> Vec<(String, String)> {
        let all = contents(&self.path(name));
        let store = Store::open(&self.path(name)).unwrap();
        assert_eq!(store.verify().unwrap().records, all.len() as u64);
        all
    }

    /// Asserts that the store of the cluster's run has the same records as a run in this process, and that no batch
    /// remains.
    fn assert_whole(&self) {
        if !self.path("local").exists() {
            go(
                &self.campaign,
                &Self::arena(),
                &self.path("local"),
                2,
                false,
                &Nobody,
            )
            .unwrap();
        }
        assert_eq!(self.contents("store"), self.contents("local"));
        let batch = self.path("store").join("batches").join(&self.campaign.name);
        assert!(!batch.exists());
    }
}

#[test]
fn a_cluster_gives_the_records_of_a_local_run() {
    let bench = Bench::new(5);
    let diary = Diary::default();
    let outcome = bench.on(&Threads::default(), false, &diary).unwrap();
    assert_eq!(
        (outcome.tally.total, outcome.tally.ran, outcome.stopped),
        (40, 40, false)
    );
    bench.assert_whole();
    assert_eq!(diary.stored.load(Ordering::SeqCst), 40);
    // The record names the kernel that the user asked for, not the digest by which the node found it.
    let store = Store::open(&bench.path("store")).unwrap();
    let row = &store.select(&Filter::default()).unwrap()[0];
    assert_eq!(&*row.campaign, "quick");
    let record = RecordReader::open(&store.path(&row.id))
        .unwrap()
        .into_record();
    assert_eq!(record.subject.variant.kernel.source, "6.12");
    // All trials have records now.
    let again = bench.on(&Threads::default(), false, &Nobody).unwrap();
    assert_eq!((again.tally.found, again.tally.ran), (40, 0));
}

#[test]
fn tasks_that_run_twice_store_each_trial_once() {
    let bench = Bench::new(5);
    let cluster = Threads {
        copies: 3,
        takes: Duration::from_millis(2),
        ..Threads::default()
    };
    assert_eq!(bench.on(&cluster, false, &Nobody).unwrap().tally.ran, 40);
    bench.assert_whole();
}

#[test]
fn tasks_that_are_lost_are_submitted_again_and_in_the_end_given_up() {
    let bench = Bench::new(5);
    let cluster = Threads {
        lost: (2, 4),
        ..Threads::default()
    };
    assert_eq!(bench.on(&cluster, false, &Nobody).unwrap().tally.ran, 40);
    assert_eq!(cluster.submitted.load(Ordering::SeqCst), 3);
    bench.assert_whole();

    let bench = Bench::new(5);
    let cluster = Threads {
        lost: (3, 2),
        ..Threads::default()
    };
    let error = bench.on(&cluster, false, &Nobody).unwrap_err();
    assert!(
        error.to_string().contains("they left no message"),
        "{error}"
    );
    // The same command continues with the trials that have no record.
    let stored = bench.contents("store").len();
    let outcome = bench.on(&Threads::default(), false, &Nobody).unwrap();
    assert_eq!(
        (outcome.tally.found, outcome.tally.ran),
        (stored, 40 - stored)
    );
    bench.assert_whole();
}

#[test]
fn nodes_that_cannot_or_must_not_run_a_trial_are_named() {
    let bench = Bench::new(5);
    let full = Threads {
        full: Some("no space left on n2".into()),
        ..Threads::default()
    };
    let error = bench.on(&full, false, &Nobody).unwrap_err().to_string();
    assert!(
        error.contains("no space left on n2") && error.contains("/logs"),
        "{error}"
    );
    let other = Threads {
        other_kernel: true,
        ..Threads::default()
    };
    let error = bench.on(&other, false, &Nobody).unwrap_err().to_string();
    assert!(
        error.contains("another trial than was planned: its kernel is"),
        "{error}"
    );
    assert!(bench.contents("store").is_empty());
    bench.on(&Threads::default(), false, &Nobody).unwrap();
    bench.assert_whole();
}

#[test]
fn a_stopped_run_cancels_its_job_and_the_same_command_goes_on() {
    let bench = Bench::new(5);
    let cluster = Threads {
        takes: Duration::from_millis(30),
        ..Threads::default()
    };
    let diary = Diary {
        stop_after: Some(3),
        ..Diary::default()
    };
    let outcome = bench.on(&cluster, false, &diary).unwrap();
    assert!(outcome.stopped);
    assert!(
        cluster.jobs.lock().unwrap()[0]
            .is_cancelled
            .load(Ordering::SeqCst)
    );
    let outcome = bench.on(&cluster, false, &Nobody).unwrap();
    assert!(!outcome.stopped && outcome.tally.found >= 3);
    assert_eq!(outcome.tally.found + outcome.tally.ran, 40);
    bench.assert_whole();
}

#[test]
fn a_detached_run_ends_at_once_and_the_same_command_waits_for_its_job() {
    let bench = Bench::new(5);
    let cluster = Threads {
        takes: Duration::from_millis(20),
        ..Threads::default()
    };
    assert!(bench.on(&cluster, true, &Nobody).unwrap().stopped);
    let outcome = bench.on(&cluster, false, &Nobody).unwrap();
    assert_eq!((outcome.tally.found, outcome.tally.ran), (40, 0));
    assert_eq!(cluster.submitted.load(Ordering::SeqCst), 1);
    bench.assert_whole();
}

/// Runs trials of a search on a cluster, or in this process. Returns seed and digest of each, or why it was refused;
/// `None` if stopped.
fn search(
    folder: &Path,
    cluster: Option<&Threads>,
    watch: &dyn EventListener,
    seeds: &[u64],
) -> Result<Option<Vec<String>>, RunError> {
    let (arena, mut store) = (Bench::arena(), Store::open(folder).unwrap());
    let elsewhere = |cluster| Elsewhere {
        cluster,
        detach: false,
    };
    let options = Options {
        elsewhere: cluster.map(|cluster| elsewhere(cluster as &dyn Cluster)),
        ..options()
    };
    let mut site = Site {
        arena: &arena,
        store: &mut store,
        options: &options,
        watch,
    };
    let trial = |seed: &u64| Trial {
        scenario: "linear".into(),
        seed: *seed,
        variant: VariantSpec {
            name: "6.12".into(),
            kernel: "6.12".into(),
            ..VariantSpec::default()
        },
        ..Trial::default()
    };
    let trials: Vec<Trial> = seeds.iter().map(trial).collect();
    let told = |tried: &Tried| match tried {
        Tried::Ran(record) => format!("{} {}", record.subject.seed, record.digest),
        Tried::Refused(why) => why.clone(),
    };
    let all = site.several("search", &trials)?;
    Ok(all.map(|all| all.iter().map(told).collect()))
}

#[test]
fn a_search_runs_its_trials_on_the_cluster_and_gets_the_records_of_a_local_one() {
    let dir = tempfile::tempdir().unwrap();
    let (here, there) = (dir.path().join("here"), dir.path().join("there"));
    let seeds = [4, 2, 9, 4, 7];
    let local = search(&here, None, &Nobody, &seeds).unwrap();
    // The tasks of the first job are lost, and each task runs twice.
    let cluster = Threads {
        copies: 2,
        lost: (1, 1),
        ..Threads::default()
    };
    let far = search(&there, Some(&cluster), &Nobody, &seeds).unwrap();
    assert_eq!(far, local);
    assert_eq!(far.unwrap().len(), 5);
    assert_eq!(cluster.submitted.load(Ordering::SeqCst), 2);
    assert_eq!(contents(&there), contents(&here));
    assert_eq!(contents(&there).len(), 4);
    // The next round submits only the trial without a record; a round of known trials submits nothing.
    search(&there, Some(&cluster), &Nobody, &[2, 5]).unwrap();
    search(&there, Some(&cluster), &Nobody, &[5, 9]).unwrap();
    assert_eq!(cluster.submitted.load(Ordering::SeqCst), 3);
    assert_eq!(contents(&there).len(), 5);
    assert!(!there.join("batches/search").exists());
}

#[test]
fn a_search_that_is_stopped_cancels_its_job_and_one_that_cannot_run_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Threads {
        takes: Duration::from_millis(30),
        ..Threads::default()
    };
    let stopped = Diary {
        stop_after: Some(0),
        ..Diary::default()
    };
    let seeds: Vec<u64> = (1..20).collect();
    assert_eq!(
        search(dir.path(), Some(&cluster), &stopped, &seeds).unwrap(),
        None
    );
    assert!(
        cluster.jobs.lock().unwrap()[0]
            .is_cancelled
            .load(Ordering::SeqCst)
    );
    let full = Threads {
        full: Some("no space left on n2".into()),
        ..Threads::default()
    };
    let error = search(dir.path(), Some(&full), &Nobody, &seeds).unwrap_err();
    assert!(error.to_string().contains("no space left on n2"), "{error}");
    let whole = search(dir.path(), Some(&Threads::default()), &Nobody, &seeds).unwrap();
    assert_eq!(whole.map(|all| all.len()), Some(19));
    assert_eq!(contents(dir.path()).len(), 19);
}

#[test]
fn two_equal_variants_get_two_records_of_each_trial() {
    let mut bench = Bench::new(3);
    bench.campaign.variants[1] = bench.campaign.variants[0].clone();
    bench.on(&Threads::default(), false, &Nobody).unwrap();
    bench.assert_whole();
    let mut of_key: BTreeMap<String, u32> = BTreeMap::new();
    for (key, _) in bench.contents("store") {
        *of_key.entry(key).or_default() += 1;
    }
    assert!(of_key.values().all(|count| *count == 2), "{of_key:?}");
}
