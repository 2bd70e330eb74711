//! Measures how many records a shared store accepts in a second from a cluster of threads with simulated trials.
//!
//! `cargo run --release -p pagetide-campaign --example workers -- 16 20000` runs 20,000 trials that take no time on 16
//! workers, and prints how long submission, results and index took. `-- 1000 20000 1900` lets each trial take 1,900 ms.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made ends")]

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/common/mod.rs"]
mod common;

use std::path::Path;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{ScriptedArena, campaign};
use pagetide_arena::NoProgress;
use pagetide_campaign::{
    BatchFolder, Cluster, ClusterError, Elsewhere, Event, EventListener, Node, Options, run, work,
};
use pagetide_record::Maker;
use pagetide_store::Store;

struct Threads {
    workers: u32,
    takes: Duration,
    running: Mutex<Vec<JoinHandle<()>>>,
    begun: Mutex<Option<Instant>>,
    ended: Mutex<Option<Instant>>,
}

impl Cluster for Threads {
    fn most_tasks(&self) -> Result<u32, ClusterError> {
        Ok(1000)
    }

    fn submit(&self, folder: &Path, tasks: u32) -> Result<String, ClusterError> {
        *self.begun.lock().unwrap() = Some(Instant::now());
        let worker = |worker: u32| {
            let (folder, workers, takes) = (folder.to_owned(), self.workers, self.takes);
            std::thread::spawn(move || {
                let arena = ScriptedArena {
                    takes,
                    tells_images: true,
                    ..ScriptedArena::default()
                };
                let folder = BatchFolder::at(&folder).unwrap();
                let node = Node {
                    arena: &arena,
                    stage: &|_| Ok(()),
                    maker: &|_| Maker::default(),
                    progress: &NoProgress,
                };
                let mut task = 1 + worker;
                while task <= tasks {
                    work(&folder, task, &node).unwrap();
                    task += workers;
                }
            })
        };
        self.running
            .lock()
            .unwrap()
            .extend((0..self.workers).map(worker));
        Ok("1".to_owned())
    }

    fn is_active(&self, _: &str) -> Result<bool, ClusterError> {
        let is_active = self
            .running
            .lock()
            .unwrap()
            .iter()
            .any(|worker| !worker.is_finished());
        if !is_active {
            self.ended.lock().unwrap().get_or_insert_with(Instant::now);
        }
        Ok(is_active)
    }

    fn cancel(&self, _: &str) -> Result<(), ClusterError> {
        Ok(())
    }
}

struct Quiet;

impl EventListener for Quiet {
    fn event(&self, _: &Event<'_>) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let mut number = |default: u32| words.next().map_or(default, |word| word.parse().unwrap());
    let (workers, trials, milliseconds) = (number(16), number(20_000), number(0));
    let takes = Duration::from_millis(milliseconds.into());
    let mut campaign = campaign(trials / 8);
    for variant in &mut campaign.variants {
        variant.kernel = "6.12".into();
    }
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let cluster = Threads {
        workers,
        takes,
        running: Mutex::default(),
        begun: Mutex::default(),
        ended: Mutex::default(),
    };
    let options = Options {
        jobs: None,
        fresh: false,
        keep_going: false,
        shard: None,
        elsewhere: Some(Elsewhere {
            cluster: &cluster,
            detach: false,
        }),
        command: String::new(),
        maker: &|_| Maker::default(),
    };
    let arena = ScriptedArena {
        tells_images: true,
        ..ScriptedArena::default()
    };
    let start = Instant::now();
    let outcome = run(&campaign, &arena, &mut store, &options, &Quiet).unwrap();
    let (begun, ended) = (
        cluster.begun.lock().unwrap().unwrap(),
        cluster.ended.lock().unwrap().unwrap(),
    );
    let rate = |seconds: f64| outcome.tally.ran as f64 / seconds;
    let (results, index) = ((ended - begun).as_secs_f64(), ended.elapsed().as_secs_f64());
    let shortest = takes.as_secs_f64() * outcome.tally.ran as f64 / f64::from(workers);
    println!(
        "{} trials, {workers} workers; the trials alone take {shortest:.2} s",
        outcome.tally.ran
    );
    println!(
        "plan and submission: {:.2} s",
        (begun - start).as_secs_f64()
    );
    println!("records: {results:.2} s, {:.0} a second", rate(results));
    println!(
        "last look and index: {index:.2} s, {:.0} a second",
        rate(index)
    );
}
