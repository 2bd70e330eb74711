//! Can the kernel still find contiguous memory?
//!
//! Under a load that ages memory, blocks worth most of the memory are asked for at a steady pace and held; then again;
//! then once more at rest. Origin: the high-order allocation stress (2010), a kernel module under compile jobs. Its latency
//! was inferred from sleep times; here every attempt is timed in nanoseconds, successes and failures apart. Success alone is
//! never the score: the next version of the series it judged gave up 8 points of success for 38 % less time.

use std::fs;

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Series, Unit};

use crate::attempt::{Asker, BlockHold, Way, fits, missing, order, thp_settings};
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
    /// Parameters, in the order the command line and the record show them.
    pub(crate) struct Highalloc {
        /// How a block is asked for: thp (first touch of an aligned, advised block), collapse (MADV_COLLAPSE of a filled
        /// one), hugetlb (one more page in the pool) or packet (a packet ring's block; up to Linux 6.12 at least its time holds
        /// some 10 ms in which the kernel waits for others to let go of the socket, so that many small blocks take long).
        by: Way = "thp";
        /// Size of a block: 2M, for thp and packet also smaller powers of two.
        block: Bytes = "2M", min = "8K", max = "4M";
        /// How much of the memory each pass asks for; by packet at most half, for rings cannot be reclaimed.
        share: f64 = "0.95", min = "0.01", max = "1";
        /// How fast blocks are asked for, in bytes a second: one block of 2M every 125 ms.
        rate: Bytes = "16M", min = "64K";
        /// Share of the memory held in single pages scattered over nearly all of it, from the start to the end, so that
        /// hardly a block is free until compaction makes one.
        fragment: f64 = "0", max = "0.4";
        /// Jobs of the load: one for each 400M of the original's memory, plus one.
        jobs: u32 = "max(2, memory / 400M + 1)", max = "256";
        /// Memory of all jobs together, when each of them compiles its largest unit.
        load: Bytes = "0.5 * memory";
        /// Files of all jobs together: half of them sources, half of them objects.
        files: Bytes = "0.25 * memory";
        /// Pause of a job between two steps.
        pause: Nanos = "20ms", min = "100us", max = "10s";
        /// How long the load ages memory before the first pass; as written 5 minutes on the original's machine, and less on
        /// a smaller one.
        age: Nanos = "4s", max = "1h", as_written = "max(4s, 300s * min(1, scale))";
        /// Pause between the first and the second pass.
        rest: Nanos = "1s", max = "1h", as_written = "5s";
        /// Size to which a page compresses, as a share: 0.05 to 0.75, or 1 for incompressible.
        content: f64 = "0.35", max = "1";
        /// Pages of the load's memory, beside the blocks asked for: small (huge ones are advised against), huge (advised, aligned; where the kernel has several
        /// sizes, each is a setting, such as thp/hugepages-64kB/enabled), or default (no advice).
        page_size: PageSize = "small";
    }
}

/// The most of the memory that packet rings may pin: beyond it the kernel kills for lack of memory.
const PINNED: f64 = 0.5;
/// Names of the passes in metrics.
const PASSES: [&str; 3] = ["1", "2", "rest"];

macro_rules! pass_metrics {
    ($($pass:literal),*) => {
        metrics![
            MetricDef::share("success", Direction::Higher, "share of all attempts of the three passes that got their block").primary(),
            MetricDef::time("attempt-time", "sum of the times of all attempts").primary(),
            MetricDef::time("success-mean", "mean time of an attempt that got its block"),
            MetricDef::time("success-deviation", "standard deviation of that time"),
            MetricDef::time("success-p50", "time that half of the successful attempts do not exceed"),
            MetricDef::time("success-p99", "time that 99 % of the successful attempts do not exceed"),
            MetricDef::time("failure-mean", "mean time of an attempt that did not get its block"),
            MetricDef::time("failure-deviation", "standard deviation of that time"),
            MetricDef::time("failure-p50", "time that half of the failed attempts do not exceed"),
            MetricDef::time("failure-p99", "time that 99 % of the failed attempts do not exceed"),
            MetricDef::count("attempts", Direction::Neutral, "attempts made in all passes"),
            MetricDef::share("held", Direction::Higher, "share of the blocks got that were still in memory at the end of their pass"),
            MetricDef::count("load-steps", Direction::Neutral, "units that the jobs of the load compiled"),
            MetricDef::of("load-written", Unit::Bytes, Direction::Neutral, "size of the files that the jobs of the load wrote"),
            $(
                MetricDef::share(concat!("success-", $pass), Direction::Higher, concat!("share of the attempts of pass ", $pass, " that got their block")),
                MetricDef::count(concat!("percent-", $pass), Direction::Higher, concat!("the same in percent, truncated as the original printed it, pass ", $pass)),
                MetricDef::share(
                    concat!("unusable-", $pass),
                    Direction::Lower,
                    concat!("share of the free memory in blocks too small, before pass ", $pass)
                ),
            )*
        ]
    };
}

/// One attempt.
struct Row {
    pass: usize,
    got: bool,
    /// Since the pass began.
    begin: u64,
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
        check_content(name, self.content, form)?;
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
            // The file of the last step is as large as memory, which the workload does not know here: the arena's
            // file system is at least this large, and a full one only shortens that file.
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
        let filler = Filler::new(self.content, trial.subject.seed)?;
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
        // A file system smaller than memory makes this file shorter; its purpose, to turn the cache over, is served.
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
    /// Asks for blocks and holds them all; returns how many of them were in memory to the end.
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
            // The pace is kept however long an attempt takes, as far as that is possible.
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

/// How many of the blocks got were held to the end of their pass: all, or success is not what it says.
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

/// Every attempt, with the cumulative mean and deviation of its pass against the share asked for so far.
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
            // With the pass's phase this finds the attempt in the trace of an observed trial.
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

/// Mean and standard deviation of values that come one by one, from exact sums.
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

    /// Of the sample; zero for one value.
    fn deviation(&self) -> f64 {
        let count = u128::from(self.count);
        if count < 2 {
            return 0.0;
        }
        let spread = count * self.squares - self.sum * self.sum;
        (spread as f64 / (count * (count - 1)) as f64).sqrt()
    }
}

/// The scenario `highalloc`.
pub(crate) static HIGHALLOC: Definition = Definition::of::<Highalloc>(
    Texts {
        name: "highalloc",
        summary: "whether the kernel still finds contiguous memory, under load and at rest",
        docs: "First `fragment` of the memory is held in scattered single pages, where asked for. `jobs` jobs age memory \
               for `age`, as a parallel compile does: each compiles one unit after the other in a process of its own, which \
               maps and fills memory, reads sources, writes an object and ends. Pass 1 asks for \
               blocks worth `share` of the memory, one at a time at `rate`, locks each one it gets and holds it (`held` proves \
               it), then frees all; pass 2 does the same after `rest`, still under load. Then the load ends, its files are deleted, a file as large as memory \
               is written, read and deleted, caches are dropped, and the pass at rest runs. Every attempt is timed (series \
               `attempts`); free blocks with the unusable free space and fragmentation indices of each zone and order are \
               kept before, between and after.",
        origin: "the high-order allocation stress (2010), as used for lumpy reclaim against compaction: success 90/91/94 % \
                 against 89/91/94 %, elapsed 2052 s against 1854 s.",
        repaired: "Latency was inferred from sleep times; successes and failures were not told apart; rows of the reclaim \
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
