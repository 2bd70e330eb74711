//! Can the kernel still find contiguous memory?
//!
//! Under a load that ages memory, blocks that add up to most of the memory are requested at a steady rate and held;
//! then again; then once more at rest. Origin: the high-order allocation stress (2010), a kernel module under compile
//! jobs. It inferred latency from sleep times; here every attempt is timed in nanoseconds, with successes and failures
//! separate. Success alone is never the score: the next version of the patch series judged by it gave up 8 points of
//! success for 38 % less time.

use std::fs;

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Series, Unit};

use crate::attempt::{Asker, BlockHold, Way, fits, missing, order, thp_settings};
use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts};
use crate::error::{ScenarioError, Stop};
use crate::files::{drop_caches, filesystem_for, make_file, read_through};
use crate::fill::{Filler, check_content};
use crate::fragmentation::FreeBlocks;
use crate::load::{COMPILED, Load, WRITTEN};
use crate::number;
use crate::page_size::PageSize;
use crate::pagemap::PageMap;
use crate::params::params;
use crate::scatter::ScatteredPages;
use crate::trial::{Trial, metrics};
use crate::workers::Team;

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Highalloc {
        /// How a block is requested: thp (first touch of an aligned block with MADV_HUGEPAGE), collapse (MADV_COLLAPSE
        /// of a filled block), hugetlb (one more page in the pool) or packet (a block of a packet ring). Up to Linux
        /// 6.12 at least, packet includes some 10 ms in which the kernel waits for other users of the socket, so many
        /// small blocks take long.
        by: Way = "thp";
        /// Size of a block: 2M, for thp and packet also smaller powers of two.
        block: Bytes = "2M", min = "8K", max = "4M";
        /// Fraction of the memory that each pass requests; by packet at most half, because rings cannot be reclaimed.
        share: f64 = "0.95", min = "0.01", max = "1";
        /// Rate of requests, in bytes per second: by default one block of 2M every 125 ms.
        rate: Bytes = "16M", min = "64K";
        /// Fraction of the memory held from start to end in single pages scattered over nearly all of it, so that there
        /// is hardly a free block until compaction makes one.
        fragment: f64 = "0", max = "0.4";
        /// Number of jobs of the load: one for each 400M of memory, plus one.
        jobs: u32 = "max(2, memory / 400M + 1)", max = "256";
        /// Memory of all jobs together, when each compiles its largest unit.
        load: Bytes = "0.5 * memory";
        /// Size of the files of all jobs together: half sources, half objects.
        files: Bytes = "0.25 * memory";
        /// Pause of a job between two compiles.
        pause: Nanos = "20ms", min = "100us", max = "10s";
        /// Time that the load ages memory before the first pass; as written 5 minutes on the original's machine, and
        /// less on a smaller one.
        age: Nanos = "4s", max = "1h", as_written = "max(4s, 300s * min(1, scale))";
        /// Pause between the first and the second pass.
        rest: Nanos = "1s", max = "1h", as_written = "5s";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; or the kind of
        /// memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of the load's memory, not of the requested blocks: small (huge pages disabled by madvise), huge
        /// (enabled by madvise, aligned; if the kernel has several sizes, each has a setting such as
        /// thp/hugepages-64kB/enabled), or default (no madvise).
        page_size: PageSize = "small";
    }
}

/// Maximum fraction of memory that packet rings may pin. With more, the OOM killer would act.
const PINNED: f64 = 0.5;
/// How metrics name the three passes.
const PASSES: [&str; 3] = ["1", "2", "rest"];

macro_rules! pass_metrics {
    ($($pass:literal),*) => {
        metrics![
            MetricDef::share("success", Direction::Higher, "fraction of all attempts of the three passes that got their block").primary(),
            MetricDef::time("attempt-time", "total time of all attempts").primary(),
            MetricDef::time("success-mean", "mean time of an attempt that got its block"),
            MetricDef::time("success-deviation", "standard deviation of that time"),
            MetricDef::time("success-p50", "median time of the successful attempts"),
            MetricDef::time("success-p99", "99th percentile of the time of the successful attempts"),
            MetricDef::time("failure-mean", "mean time of an attempt that did not get its block"),
            MetricDef::time("failure-deviation", "standard deviation of that time"),
            MetricDef::time("failure-p50", "median time of the failed attempts"),
            MetricDef::time("failure-p99", "99th percentile of the time of the failed attempts"),
            MetricDef::count("attempts", Direction::Neutral, "attempts made in all passes"),
            MetricDef::share("held", Direction::Higher, "fraction of the allocated blocks that were still in memory at the end of their pass"),
            MetricDef::count("load-steps", Direction::Neutral, "units that the jobs of the load compiled"),
            MetricDef::of("load-written", Unit::Bytes, Direction::Neutral, "size of the files that the jobs of the load wrote"),
            $(
                MetricDef::share(concat!("success-", $pass), Direction::Higher, concat!("fraction of the attempts of pass ", $pass, " that got their block")),
                MetricDef::count(concat!("percent-", $pass), Direction::Higher, concat!("successful attempts in percent, truncated as in the original, of pass ", $pass)),
                MetricDef::share(
                    concat!("unusable-", $pass),
                    Direction::Lower,
                    concat!("fraction of the free memory in blocks that are too small, before pass ", $pass)
                ),
            )*
        ]
    };
}

/// One attempt to allocate a block.
struct Row {
    /// Index of the pass in `PASSES`.
    pass: usize,
    /// True if the block was allocated.
    got: bool,
    /// Start of the attempt: time since the pass began, in nanoseconds.
    begin: u64,
    /// Duration of the attempt in nanoseconds.
    time: u64,
}

impl Highalloc {
    fn attempts(&self, memory: Bytes) -> u64 {
        number::floor(memory.0 as f64 * self.share / self.block.0 as f64).max(1)
    }

    fn work(&self) -> Load {
        Load {
            jobs: self.jobs,
            memory: Bytes(self.load.0 / u64::from(self.jobs.max(1))),
            files: Bytes(self.files.0 / u64::from(self.jobs.max(1))),
            pause: self.pause,
            page_size: self.page_size,
        }
    }
}

impl Scenario for Highalloc {
    const METRICS: &'static [MetricDef] = pass_metrics!["1", "2", "rest"];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)?;
        if let Err(sizes) = fits(self.by, self.block) {
            return Err(ScenarioError::OutOfBounds {
                scenario: name.to_owned(),
                parameter: "block",
                value: self.block.to_string(),
                bounds: sizes.to_owned(),
            });
        }
        if self.by == Way::Packet && self.share > PINNED {
            return Err(ScenarioError::Contradiction {
                scenario: name.to_owned(),
                why: format!(
                    "rings worth {} of the memory, none of which can be reclaimed, leave too little for the load: \
                     lower share to {PINNED}",
                    self.share
                ),
            });
        }
        if self.load > context.memory {
            return Err(ScenarioError::Contradiction {
                scenario: name.to_owned(),
                why: format!(
                    "a load of {} leaves nothing of {}: lower load",
                    self.load, context.memory
                ),
            });
        }
        Ok(())
    }

    fn needs(&self, _form: Form) -> Needs {
        let huge = matches!(self.by, Way::Thp | Way::Collapse);
        let of_load = self.page_size.needs();
        let mut settings = of_load.settings;
        if huge {
            settings.extend(thp_settings(self.block));
        }
        Needs {
            swap: true,
            own_machine: Some("it counts free blocks in the zones of a whole machine"),
            // The file of the last step is as large as memory, whose size is not known here. The arena's file system
            // has at least this size; if it is full, the file is only shorter.
            filesystem: Some(filesystem_for(Bytes(
                self.load.0 * 2 + self.work().room().0,
            ))),
            thp: huge || of_load.thp,
            settings,
            packet: self.by == Way::Packet,
            ..Needs::default()
        }
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        if let Some(feature) = missing(self.by, self.block) {
            trial.settle();
            trial.not_on_this_kernel(&feature);
            for def in Self::METRICS {
                trial.absent(def.name, "not on this kernel");
            }
            return Ok(());
        }
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        let mut asker = Asker {
            way: self.by,
            block: self.block,
            clock: trial.place.clock,
            filler: &filler,
            page_map: PageMap::open()?,
        };
        let attempts = self.attempts(trial.memory());
        let mut rows: Vec<Row> = Vec::with_capacity(number::index(attempts * 3));
        trial.settle();

        let scattered = if self.fragment > 0.0 {
            trial.phase("fragment");
            Some(ScatteredPages::hold(
                self.fragment,
                trial.memory(),
                &filler,
            )?)
        } else {
            None
        };
        trial.phase("age");
        let load = self.work();
        let jobs = load.start(trial, &filler)?;
        trial.sleep(self.age);
        let mut still_held = self.pass(trial, &mut asker, 0, &mut rows)?;
        trial.sleep(self.rest);
        still_held += self.pass(trial, &mut asker, 1, &mut rows)?;

        trial.phase("clean");
        self.end_load(trial, jobs)?;
        load.delete_files(trial.place.work_dir);
        let path = trial.place.work_dir.join("pagetide-large");
        // On a file system smaller than memory the file is shorter; it still replaces the content of the page cache.
        let _ = make_file(&path, trial.memory().pages().0, &filler);
        let _ = read_through(&path);
        let _ = fs::remove_file(&path);
        drop_caches(trial);
        still_held += self.pass(trial, &mut asker, 2, &mut rows)?;

        drop(scattered);
        trial.phase("report");
        trial.series(&FreeBlocks::now().series("fragmentation-after"));
        report(trial, attempts, &rows);
        held(trial, still_held, &rows);
        Ok(())
    }
}

impl Highalloc {
    /// Requests blocks at a steady rate and keeps them all. Returns how many of them were still in memory at the end.
    fn pass(
        &self,
        trial: &mut Trial<'_>,
        asker: &mut Asker<'_>,
        pass: usize,
        rows: &mut Vec<Row>,
    ) -> Result<u64, Stop> {
        let name = PASSES[pass];
        let before = FreeBlocks::now();
        trial.series(&before.series(&format!("fragmentation-before-{name}")));
        match before.unusable(order(self.block)) {
            Some(share) => trial.metric(&format!("unusable-{name}"), share),
            None => trial.absent(&format!("unusable-{name}"), "no free blocks are told"),
        }
        trial.phase(&format!("pass-{name}"));
        let interval = Nanos(self.block.0 * 1_000_000_000 / self.rate.0.max(1));
        let mut held: Vec<BlockHold> = Vec::new();
        let start = trial.place.clock.now();
        let mut due = start;
        for _ in 0..self.attempts(trial.memory()) {
            let attempt = asker.ask()?;
            rows.push(Row {
                pass,
                got: attempt.held.is_some(),
                begin: attempt.begin.since(start).0,
                time: attempt.latency.0,
            });
            held.extend(attempt.held);
            trial.tick();
            // The next request is due at a fixed interval after this one. If an attempt takes longer, the next one
            // begins at once.
            due = Nanos(due.0 + interval.0);
            trial.sleep(due.since(trial.place.clock.now()));
        }
        let mut still_held = 0;
        for block in &held {
            still_held += u64::from(asker.is_held(block)?);
        }
        Ok(still_held)
    }

    fn end_load(&self, trial: &mut Trial<'_>, jobs: Team) -> Result<(), Stop> {
        jobs.ask_to_stop();
        let (mut steps, mut written) = (0, 0);
        for ended in jobs.join()? {
            trial.account(ended.usage);
            steps += ended.values[COMPILED];
            written += ended.values[WRITTEN];
        }
        trial.metric("load-steps", steps as f64);
        trial.metric("load-written", written as f64);
        if self.jobs > 0 && steps == 0 {
            trial.must_count("jobs of the load at work", u64::from(self.jobs), 0);
        }
        Ok(())
    }
}

/// Sets the metric `held` and marks the trial as invalid unless all blocks were held to the end of their pass.
/// Otherwise the success metrics would be wrong.
fn held(trial: &mut Trial<'_>, still_held: u64, rows: &[Row]) {
    let got = rows.iter().filter(|row| row.got).count() as u64;
    if got == 0 {
        trial.absent("held", "no block was got");
        return;
    }
    trial.metric("held", still_held as f64 / got as f64);
    trial.must_count("blocks held to the end of their pass", got, still_held);
}

fn report(trial: &mut Trial<'_>, attempts: u64, rows: &[Row]) {
    trial.must_count("attempts", attempts * 3, rows.len() as u64);
    trial.metric("attempts", rows.len() as f64);
    trial.metric(
        "attempt-time",
        rows.iter().map(|row| row.time).sum::<u64>() as f64,
    );
    let got = |pass: Option<usize>| {
        let of = |row: &&Row| pass.is_none_or(|pass| row.pass == pass);
        let all = rows.iter().filter(of).count();
        (rows.iter().filter(of).filter(|row| row.got).count(), all)
    };
    let (successes, all) = got(None);
    trial.metric("success", successes as f64 / all as f64);
    for (pass, name) in PASSES.into_iter().enumerate() {
        let (successes, all) = got(Some(pass));
        trial.metric(&format!("success-{name}"), successes as f64 / all as f64);
        trial.metric(
            &format!("percent-{name}"),
            (successes * 100 / all.max(1)) as f64,
        );
    }
    for (success, name) in [(true, "success"), (false, "failure")] {
        let mut times: Vec<u64> = rows
            .iter()
            .filter(|row| row.got == success)
            .map(|row| row.time)
            .collect();
        times.sort_unstable();
        let names = ["mean", "deviation", "p50", "p99"].map(|what| format!("{name}-{what}"));
        if times.is_empty() {
            for metric in &names {
                trial.absent(metric, &format!("there was no {name}"));
            }
            continue;
        }
        let moments = Moments::of(&times);
        let nearest = |share: usize| times[(times.len() * share).div_ceil(100).max(1) - 1] as f64;
        for (metric, value) in names.iter().zip([
            moments.mean(),
            moments.deviation(),
            nearest(50),
            nearest(99),
        ]) {
            trial.metric(metric, value);
        }
        trial.histogram(name, times.iter().copied().collect());
    }
    attempts_series(trial, attempts, rows);
}

/// Stores the series `attempts`. It has a row for each attempt, with the fraction of blocks requested so far, and with
/// mean and standard deviation of the attempts' durations in the pass so far.
fn attempts_series(trial: &mut Trial<'_>, attempts: u64, rows: &[Row]) {
    let mut cumulative = Vec::with_capacity(rows.len());
    let (mut pass, mut so_far) = (usize::MAX, Moments::default());
    for row in rows {
        if row.pass != pass {
            (pass, so_far) = (row.pass, Moments::default());
        }
        so_far.add(row.time);
        cumulative.push([
            so_far.count as f64 / attempts as f64,
            so_far.mean(),
            so_far.deviation(),
        ]);
    }
    let column = |index: usize| {
        cumulative
            .iter()
            .map(move |values: &[f64; 3]| values[index])
    };
    trial.series(
        &Series::new("attempts")
            .int(
                "pass",
                Unit::Count,
                rows.iter().map(|row| number::signed(row.pass as u64)),
            )
            .int(
                "success",
                Unit::Count,
                rows.iter().map(|row| i64::from(row.got)),
            )
            // Added to the start of the pass, this gives the time of the attempt in the trace of an observed
            // trial.
            .int(
                "begin",
                Unit::Nanos,
                rows.iter().map(|row| number::signed(row.begin)),
            )
            .int(
                "latency",
                Unit::Nanos,
                rows.iter().map(|row| number::signed(row.time)),
            )
            .float("asked", Unit::Share, column(0))
            .float("mean-so-far", Unit::Nanos, column(1))
            .float("deviation-so-far", Unit::Nanos, column(2)),
    );
}

/// Computes mean and standard deviation from exact sums of values that are added one by one.
#[derive(Default)]
struct Moments {
    count: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    fn of(values: &[u64]) -> Self {
        let mut moments = Self::default();
        for value in values {
            moments.add(*value);
        }
        moments
    }

    fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.squares += u128::from(value) * u128::from(value);
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// Returns the sample standard deviation; zero if there are fewer than two values.
    fn deviation(&self) -> f64 {
        let count = u128::from(self.count);
        if count < 2 {
            return 0.0;
        }
        let spread = count * self.squares - self.sum * self.sum;
        (spread as f64 / (count * (count - 1)) as f64).sqrt()
    }
}

/// Definition of the scenario `highalloc`.
pub(crate) static HIGHALLOC: Definition = Definition::of::<Highalloc>(
    Texts {
        name: "highalloc",
        summary: "whether the kernel still finds contiguous memory, under load and at rest",
        docs: "First, the fraction `fragment` of the memory is held in scattered single pages, if requested. `jobs` jobs age memory \
               for `age`, like a parallel compile: each compiles one unit after the other in a separate process, which \
               maps and fills memory, reads sources, writes an object and exits. Pass 1 requests \
               blocks that add up to `share` of the memory, one at a time at `rate`, locks each block and holds it (`held` proves \
               it), then frees all; pass 2 does the same after `rest`, still under load. Then the load ends, its files are deleted, a file as large as memory \
               is written, read and deleted, caches are dropped, and the pass at rest runs. Every attempt is timed (series \
               `attempts`). Free blocks, with the unusable free space and fragmentation indices of each zone and order, are \
               recorded before, between and after the passes.",
        origin: "the high-order allocation stress (2010), as used for lumpy reclaim against compaction: success 90/91/94 % \
                 against 89/91/94 %, elapsed 2052 s against 1854 s.",
        repaired: "Latency was inferred from sleep times; successes and failures were not separated; rows of the reclaim \
                   table counted only some processes. As written memory ages for 5 minutes, in proportion to its size.",
    },
    Bytes::from_mib(3072),
    &[],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_are_those_of_the_sample() {
        let moments = Moments::of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert!((moments.mean() - 5.0).abs() < 1e-12);
        assert!((moments.deviation() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!(Moments::of(&[3]).deviation().abs() < 1e-12);
    }
}
