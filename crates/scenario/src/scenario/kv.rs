//! What does a snapshot cost a key-value store under memory pressure?
//!
//! A store of fixed-size values is read and written with a zipf distribution of keys. A forked child writes a snapshot
//! of the store to a file while the parent continues, so every page that the parent writes meanwhile is copied. Origin:
//! the way Redis saves (BGSAVE) and its known latency spikes under memory pressure; there is no original program.

use std::fs::{self, File};
use std::io::Write;

use pagetide_quantity::{Bytes, Direction, Histogram, MetricDef, Nanos, Unit};
use pagetide_reference::{Pattern, Rng, Zipf};

use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts, must_fit};
use crate::error::{ScenarioError, Stop};
use crate::files::filesystem_for;
use crate::fill::{Filler, check_content};
use crate::harness::LockedBuffer;
use crate::mapping::Mapping;
use crate::number;
use crate::page::PAGE;
use crate::page_size::PageSize;
use crate::params::params;
use crate::touch::{Amount, Mark, Offset, Recorder, Touch, WRITE};
use crate::trial::{COMPRESSED, Trial, metrics};
use crate::workers::{Team, Usage};

/// Number of operations that are generated and timed as one batch.
const STEP: usize = 256;
/// Indices of the values that the child reports: snapshot finished, time taken, pages written.
const SNAPSHOT: [usize; 3] = [0, 1, 2];

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Kv {
        /// Size of the store; a value is one page.
        size: Bytes = "0.8 * memory", min = "64K";
        /// Number of operations, each timed.
        operations: u64 = "8 * size / 4K", min = "16", max = "4294967295";
        /// Fraction of the operations that read; the others write.
        reads: f64 = "0.9", max = "1";
        /// Exponent of the zipf distribution of keys.
        exponent: f64 = "0.99", max = "16";
        /// Whether a snapshot is written, starting after a quarter of the operations.
        snapshot: bool = "true";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; or the kind of
        /// memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of the store: small (huge pages disabled by madvise), huge (enabled by madvise, aligned; if the
        /// kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default (no madvise).
        page_size: PageSize = "small";
    }
}

impl Kv {
    fn pattern(&self) -> Pattern {
        Pattern::Zipf(Zipf {
            exponent: self.exponent,
            // Hot keys are scattered over the store, as in a hash table.
            scatter: true,
        })
    }

    fn keys(&self) -> u32 {
        number::narrow(self.size.pages().0)
    }
}

impl Scenario for Kv {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::time("operation-min", "shortest operation"),
        MetricDef::time("operation-mean", "mean operation").primary(),
        MetricDef::time("operation-p50", "median operation"),
        MetricDef::time("operation-p90", "90th percentile of the operations"),
        MetricDef::time("operation-p99", "99th percentile of the operations").primary(),
        MetricDef::time("operation-p999", "99.9th percentile of the operations"),
        MetricDef::time("operation-max", "longest operation"),
        MetricDef::time(
            "snapshot-mean",
            "mean operation while the snapshot was written"
        ),
        MetricDef::time(
            "snapshot-p99",
            "99th percentile of the operations while the snapshot was written"
        ),
        MetricDef::time(
            "snapshot-max",
            "longest operation while the snapshot was written"
        ),
        MetricDef::time(
            "snapshot-time",
            "time from the fork until the snapshot is on the device"
        )
        .primary(),
        MetricDef::time(
            "fork",
            "time of the fork itself, during which the store is blocked"
        ),
        MetricDef::count(
            "snapshot-operations",
            Direction::Neutral,
            "operations while the snapshot was written"
        ),
        MetricDef::count(
            "copies",
            Direction::Lower,
            "minor page faults of the store while the snapshot was written, mainly copies on write"
        ),
        MetricDef::count(
            "major-faults",
            Direction::Lower,
            "page faults of the store that had to wait for a device"
        ),
        MetricDef::count("operations", Direction::Neutral, "operations made"),
        MetricDef::of(
            "snapshot-pages",
            Unit::Pages,
            Direction::Neutral,
            "pages written to the snapshot"
        ),
        COMPRESSED,
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)?;
        self.pattern().check(self.keys(), self.operations)?;
        // In the worst case every page is copied while the snapshot is written.
        must_fit(Bytes(self.size.0.saturating_mul(2)), context)
    }

    fn needs(&self, _form: Form) -> Needs {
        Needs {
            swap: true,
            pressure: self.snapshot,
            filesystem: self.snapshot.then(|| filesystem_for(self.size)),
            ..self.page_size.needs()
        }
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        let mut all = Recorder::without_log()?;
        all.log_to(&trial.place.region, "access-log", self.operations);
        all.write_content(&filler);
        let mut batch = LockedBuffer::<u32>::new(STEP)?;
        trial.settle();

        trial.phase("fill");
        let keys = self.size.pages();
        let store = self.page_size.map(keys)?;
        store.fill(&filler, 0, keys.0);

        trial.phase("operations");
        trial.steps(self.operations);
        let mut next = Operations {
            references: self
                .pattern()
                .references(self.keys(), self.operations, trial.subject.seed)
                .map_err(ScenarioError::from)?,
            reads: number::floor(self.reads * 9_007_199_254_740_992.0),
            rng: trial.rng("operations"),
        };
        // A value is a whole page: an operation copies it.
        let touch = Touch::mapping(&store, Amount::Page, Offset::At(0));
        let mut saving: Option<Saving> = None;
        let mut saved: Option<FinishedSave> = None;
        let before = Usage::own();
        let mut done = 0;
        while done < self.operations {
            if self.snapshot && saved.is_none() && saving.is_none() && done >= self.operations / 4 {
                trial.phase("snapshot");
                saving = Some(Saving {
                    mark: all.mark(),
                    usage: Usage::own(),
                    team: Self::save(trial, &store)?,
                });
            }
            let filled = next.fill(&mut batch);
            if filled == 0 {
                break;
            }
            all.touch(trial.place.clock, &touch, &batch[..filled]);
            done += filled as u64;
            trial.done(done);
            if saving
                .as_ref()
                .is_some_and(|saving| saving.team.value(0, SNAPSHOT[0]) != 0)
            {
                saved = saving.take().map(|saving| saving.end(&all));
                trial.phase("operations");
            }
        }
        let faults = Usage::own().since(before);
        trial.phase("report");
        trial.compressed();
        // A snapshot that is unfinished after the last operation counts too.
        let saved = saved.or_else(|| saving.map(|saving| saving.end(&all)));
        trial.must_count("operations", self.operations, all.count());
        trial.metric("operations", all.count() as f64);
        trial.metric("major-faults", faults.major_faults as f64);
        trial.accesses("operation", &mut all);
        trial.finish_log(&mut all);
        if let Some(saved) = saved {
            return self.report(trial, saved);
        }
        for def in Self::METRICS {
            if def.name.starts_with("snapshot") || matches!(def.name, "fork" | "copies") {
                trial.absent(def.name, "no snapshot was asked for");
            }
        }
        Ok(())
    }
}

impl Kv {
    /// Forks a child that writes the current content of the store to a file. Returns the child.
    fn save(trial: &mut Trial<'_>, store: &Mapping) -> Result<Team, Stop> {
        let path = trial.place.work_dir.join("pagetide-snapshot");
        let clock = trial.place.clock;
        let (fork, team) = trial.time(|| {
            trial.team("snapshot", 1, |member| {
                let start = clock.now();
                let cannot = || Stop::system(format!("cannot write {}", path.display()));
                let mut file = File::create(&path).map_err(cannot())?;
                let mut written = 0;
                for page in 0..store.pages() {
                    // SAFETY: the page lies within the mapping, which is private to this process of one thread: nobody writes to it
                    // while the slice lives.
                    let bytes = unsafe { std::slice::from_raw_parts(store.page(page), PAGE) };
                    file.write_all(bytes).map_err(cannot())?;
                    written += 1;
                }
                file.sync_all().map_err(cannot())?;
                member.put(SNAPSHOT[1], clock.now().since(start).0);
                member.put(SNAPSHOT[2], written);
                member.put(SNAPSHOT[0], 1);
                Ok(())
            })
        });
        let team = team?;
        trial.time_metric("fork", fork);
        Ok(team)
    }

    fn report(&self, trial: &mut Trial<'_>, saved: FinishedSave) -> Result<(), Stop> {
        let mut time = 0;
        let mut pages = 0;
        for ended in saved.team.join()? {
            trial.account(ended.usage);
            time += ended.values[SNAPSHOT[1]];
            pages += ended.values[SNAPSHOT[2]];
        }
        trial.must_count("pages of the snapshot", self.size.pages().0, pages);
        let _ = fs::remove_file(trial.place.work_dir.join("pagetide-snapshot"));
        trial.time_metric("snapshot-time", Nanos(time));
        trial.metric("snapshot-pages", pages as f64);
        trial.metric("copies", saved.copies as f64);
        let histogram = saved.during;
        trial.metric("snapshot-operations", histogram.count as f64);
        trial.metric("snapshot-mean", histogram.mean());
        trial.metric("snapshot-p99", histogram.quantile(0.99) as f64);
        trial.metric("snapshot-max", histogram.max as f64);
        trial.histogram("operation-during-snapshot", histogram);
        Ok(())
    }
}

/// A snapshot of the store that a child is writing at present.
struct Saving {
    team: Team,
    /// State of the latency recorder at the start of the snapshot.
    mark: Mark,
    /// Resource usage of this process at the start of the snapshot.
    usage: Usage,
}

/// Results of a snapshot, which the child may still have been writing after the last operation.
struct FinishedSave {
    team: Team,
    during: Histogram,
    copies: u64,
}

impl Saving {
    fn end(self, all: &Recorder) -> FinishedSave {
        FinishedSave {
            during: all.since(&self.mark),
            copies: Usage::own().since(self.usage).minor_faults,
            team: self.team,
        }
    }
}

/// Generates the operations: a key for each, and whether it reads or writes.
struct Operations {
    references: pagetide_reference::References<'static>,
    /// An operation reads if a random number of 53 bits is below this.
    reads: u64,
    rng: Rng,
}

impl Operations {
    fn fill(&mut self, batch: &mut [u32]) -> usize {
        let filled = self.references.fill(batch);
        for item in &mut batch[..filled] {
            if self.rng.next_u64() >> 11 >= self.reads {
                *item |= WRITE;
            }
        }
        filled
    }
}

/// Definition of the scenario `kv`.
pub(crate) static KV: Definition = Definition::of::<Kv>(
    Texts {
        name: "kv",
        summary: "what a forked snapshot costs a key-value store under memory pressure",
        docs: "Fills a store of `size` bytes, one page per value, then makes `operations` reads and writes of whole values, with keys \
               from a zipf distribution, each timed. After a quarter of them a child is forked that writes the whole store to a \
               file, page by page, and syncs it, while the parent continues. Every page that the parent writes meanwhile is copied, and the \
               pages of the file compete for the same memory.",
        origin: "the way Redis saves in the background (BGSAVE); YCSB's zipf constant of 0.99.",
        repaired: "",
    },
    Bytes::from_mib(1024),
    &[],
);
