//! A scripted arena for tests. It runs no workload, computes results at once unless a test gives trials a duration, and
//! behaves as the test specifies.

// Every test file uses only some of these helpers, and helpers may unwrap as tests do.

pub mod trace;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pagetide_arena::{
    Arena, ArenaError, Guest, PreparedTrial, Progress, Step, Trial, TrialResult, VariantSpec,
};
use pagetide_campaign::{
    Campaign, Event, EventListener, Observe, Options, Outcome, RunError, Sampling, ScenarioSpec,
    Tally, Until, run,
};
use pagetide_compare::compare_campaign;
use pagetide_quantity::{Bytes, Metric, MetricDef, Nanos};
use pagetide_record::wire::Phase;
use pagetide_record::{
    ArenaKind, Invalid, KernelId, Maker, Pass, RecordWriter, Results, Subject, TraceRing, Wall,
};
use pagetide_store::{Filter, Store};

/// The primary metric of scripted trials.
pub const TIME: MetricDef = MetricDef::time("run", "whole run").primary();

/// Behaviour of a scripted trial that does not end normally.
#[derive(Clone, Debug)]
pub enum Act {
    /// The trial produces an invalid record for this reason.
    Invalid(Invalid),
    /// The arena fails with this message.
    Break(String),
    /// The trial waits until it is stopped.
    WaitForStop,
}

/// Ratio of a trial's metric to the baseline's.
pub type Planted = Box<dyn Fn(&Trial) -> f64 + Send + Sync>;

/// An arena that returns computed results instead of running trials.
pub struct ScriptedArena {
    /// Kind of arena that this arena claims to be.
    pub kind: ArenaKind,
    /// Wall-clock time of a trial.
    pub takes: Duration,
    /// Ratio of this arena's trial durations to those on the machine that campaign files refer to.
    pub slower: u64,
    /// Ratio of a variant's metric to the baseline's, by the variant's name.
    pub effect: BTreeMap<String, f64>,
    /// Ratio of a trial's metric to the baseline's, as a function of the trial; 1 if there is no function.
    pub planted: Option<Planted>,
    /// Values that settings have where the variant does not set them, as read back in every trial.
    pub reads: BTreeMap<String, String>,
    /// Special behaviour of trials, by variant and seed.
    pub deeds: BTreeMap<(String, u64), Act>,
    /// Content of the traces of observed passes, by the variant's name.
    pub tells: BTreeMap<String, trace::Told>,
    /// True if a kernel's digest is its name, so that kernels with other names have other images. If false, all digests
    /// are empty.
    pub tells_images: bool,
    /// Name of a kernel that this arena refuses, if any.
    pub refuses: Option<String>,
    /// Why this arena cannot run profiled passes, if it cannot.
    pub lacks_profiles: Option<String>,
    /// Wall-clock time reported for a guest's boot; each kind of swap has its own guest. `None` if this arena has no
    /// guests to boot.
    pub boot: Option<Nanos>,
    /// Trials in the order in which they started.
    pub log: Mutex<Vec<Trial>>,
    /// Number of trials prepared so far.
    pub prepared: AtomicUsize,
    /// Number of trials running now; `most` has its maximum so far.
    pub running: AtomicUsize,
    pub most: AtomicUsize,
}

impl Default for ScriptedArena {
    fn default() -> Self {
        Self {
            kind: ArenaKind::Exact,
            takes: Duration::ZERO,
            slower: 1,
            effect: BTreeMap::new(),
            planted: None,
            reads: BTreeMap::new(),
            deeds: BTreeMap::new(),
            tells: BTreeMap::new(),
            tells_images: false,
            refuses: None,
            lacks_profiles: None,
            boot: None,
            log: Mutex::new(Vec::new()),
            prepared: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }
}

/// A number from 0 to 1 that depends only on a text.
fn noise(text: &str) -> f64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

impl Arena for ScriptedArena {
    fn kind(&self) -> ArenaKind {
        self.kind
    }

    fn side_by_side(&self, largest: &PreparedTrial) -> usize {
        if largest.subject().memory.bytes() > Bytes::from_mib(100) {
            1
        } else {
            2
        }
    }

    fn lacks_profiles(&self) -> Option<String> {
        self.lacks_profiles.clone()
    }

    fn prepare(&self, trial: &Trial) -> Result<PreparedTrial, ArenaError> {
        if self.refuses.as_ref() == Some(&trial.variant.kernel) {
            return Err(ArenaError::refused(format!(
                "kernel {} has no CONFIG_SWAP: choose another",
                trial.variant.kernel
            )));
        }
        self.prepared.fetch_add(1, Ordering::SeqCst);
        let kernel = KernelId {
            source: trial.variant.kernel.clone(),
            release: trial.variant.kernel.clone(),
            digest: if self.tells_images {
                trial.variant.kernel.clone()
            } else {
                String::new()
            },
            ..KernelId::default()
        };
        let mut subject = trial.subject(kernel, Bytes::from_mib(256));
        subject.arena.kind = self.kind;
        subject.arena.cmdline = trial.variant.boot.join(" ");
        Ok(PreparedTrial::new(trial.clone(), subject, ()))
    }

    fn here(&self, there: Nanos) -> Nanos {
        Nanos(there.0 * self.slower)
    }

    fn guest(&self, prepared: &PreparedTrial) -> Option<Guest> {
        let key = prepared.subject().swap.to_string();
        let ran = self.log.lock().unwrap();
        let is_ready = ran.iter().any(|trial| trial.swap.to_string() == key);
        let boot = if is_ready { Nanos(0) } else { self.boot? };
        Some(Guest { key, boot })
    }

    fn run(
        &self,
        prepared: &PreparedTrial,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<TrialResult, ArenaError> {
        let (trial, subject) = (prepared.trial(), prepared.subject());
        self.log.lock().unwrap().push(trial.clone());
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        let result = self.act(trial, subject, sink, progress);
        self.running.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

impl ScriptedArena {
    fn act(
        &self,
        trial: &Trial,
        subject: &Subject,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<TrialResult, ArenaError> {
        let deed = self.deeds.get(&(trial.variant.name.clone(), trial.seed));
        let started = Instant::now();
        while started.elapsed() < self.takes || matches!(deed, Some(Act::WaitForStop)) {
            if progress.is_stopped() {
                return Err(ArenaError::Stopped);
            }
            progress.step(Step {
                phase: Phase::Running,
                done: 1,
                total: 2,
                clock: Nanos(1),
            });
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(Act::Break(why)) = deed {
            return Err(ArenaError::broken(why.clone()));
        }
        sink.section("blob", "log", subject.key().as_bytes())?;
        let mut results = Results::default();
        // The seed shifts both trials of a pair equally; the rest differs for each trial.
        let base = 1e9 * (1.0 + 0.2 * noise(&format!("{} {}", subject.cell(), trial.seed)));
        let own = 1.0 + 0.002 * noise(&subject.key());
        let effect = self.effect.get(&trial.variant.name).copied().unwrap_or(1.0);
        let planted = self.planted.as_ref().map_or(1.0, |ratio| ratio(trial));
        results
            .metrics
            .push(Metric::new(&TIME, base * own * effect * planted));
        results.settings.clone_from(&self.reads);
        let given = trial.variant.settings.clone();
        results.settings.extend(given);
        if trial.pass == Pass::Observed
            && let Some(told) = self.tells.get(&trial.variant.name)
        {
            told.write(sink, &mut results)?;
        }
        if let Some(Act::Invalid(why)) = deed {
            results.invalid.push(why.clone());
        }
        Ok(TrialResult {
            kernel_config: BTreeMap::new(),
            results,
            wall: Wall::default(),
            ended: Instant::now(),
        })
    }

    /// Trials started so far, in the order in which they started.
    pub fn begun(&self) -> Vec<Trial> {
        self.log.lock().unwrap().clone()
    }
}

/// A campaign with two variants and two scenarios on two kinds of swap.
pub fn campaign(seeds: u32) -> Campaign {
    let variant = |name: &str| VariantSpec {
        name: name.into(),
        kernel: "6.12".into(),
        settings: [("lru_gen/enabled".into(), name.into())].into(),
        ..VariantSpec::default()
    };
    let scenario = |name: &str| ScenarioSpec {
        name: name.into(),
        swap: vec!["zram".parse().unwrap(), "ssd".parse().unwrap()],
        ..ScenarioSpec::default()
    };
    Campaign {
        name: "quick".into(),
        arena: ArenaKind::Exact,
        seed: 3,
        variants: vec![variant("off"), variant("on")],
        scenarios: vec![scenario("linear"), scenario("swapbench")],
        sampling: Sampling {
            until: Until::Blocks(seeds),
            ..Sampling::default()
        },
        observe: Observe::None,
        profile: Observe::None,
        references: false,
        trace_ring: TraceRing::default(),
        accept: Vec::new(),
    }
}

/// A watcher that collects events and stops the campaign after a given number of stored trials.
#[derive(Default)]
pub struct Diary {
    pub lines: Mutex<Vec<String>>,
    pub last: Mutex<Tally>,
    pub stop_after: Option<usize>,
    pub stored: AtomicUsize,
}

impl EventListener for Diary {
    fn event(&self, event: &Event<'_>) {
        let line = match event {
            Event::Planned(tally) => {
                *self.last.lock().unwrap() = *tally;
                format!("planned {} of {}", tally.total - tally.found, tally.total)
            }
            Event::Started { number, .. } => format!("started {number}"),
            Event::Step { .. } => return,
            Event::Stored { number, tally, .. } => {
                *self.last.lock().unwrap() = *tally;
                self.stored.fetch_add(1, Ordering::SeqCst);
                format!("stored {number}")
            }
            Event::Told(text) => (*text).to_owned(),
            Event::Futile(futile) => futile.sentence(),
            Event::Settled { .. } => event.sentence().unwrap(),
            Event::Deepened { from, to, .. } => format!("deepened from {from} to {to}"),
            Event::Looked {
                blocks,
                decided,
                primaries,
                next,
            } => format!("looked after {blocks}: {decided} of {primaries}, next {next:?}"),
        };
        self.lines.lock().unwrap().push(line);
    }

    fn is_stopped(&self) -> bool {
        self.stop_after
            .is_some_and(|n| self.stored.load(Ordering::SeqCst) >= n)
    }
}

/// Options of a run of the whole campaign in this process, with an empty command and an empty maker.
pub fn options() -> Options<'static> {
    Options {
        jobs: None,
        fresh: false,
        keep_going: false,
        shard: None,
        elsewhere: None,
        command: String::new(),
        maker: &|_| Maker::default(),
    }
}

/// Runs a campaign with an empty maker.
pub fn go(
    campaign: &Campaign,
    arena: &ScriptedArena,
    folder: &Path,
    jobs: usize,
    fresh: bool,
    watch: &dyn EventListener,
) -> Result<Outcome, RunError> {
    let mut store = Store::open(folder)?;
    let options = Options {
        jobs: Some(jobs),
        fresh,
        command: "pagetide run test.toml".to_owned(),
        ..options()
    };
    run(campaign, arena, &mut store, &options, watch)
}

/// Key of the trial and digest of the results of every record, sorted.
pub fn contents(folder: &Path) -> Vec<(String, String)> {
    let store = Store::open(folder).unwrap();
    let mut all: Vec<_> = store
        .select(&Filter::default())
        .unwrap()
        .into_iter()
        .map(|row| (row.key, row.digest))
        .collect();
    all.sort_unstable();
    all
}

/// All judgements of the last campaign, without the IDs of their records.
pub fn verdicts(folder: &Path) -> Vec<String> {
    let store = Store::open(folder).unwrap();
    let comparison = compare_campaign(&store, None).unwrap();
    assert_eq!(comparison.cells.len(), 4);
    comparison
        .cells
        .iter()
        .flat_map(|cell| &cell.metrics)
        .flat_map(|metric| &metric.judgements)
        .map(|judgement| serde_json::to_string(judgement).unwrap())
        .collect()
}
