//! What does a hungry neighbour do to a latency-sensitive program, and does `memory.low` protect it?
//!
//! A paced process and hungry processes each run in a memory group of their own. Each fits into memory alone; together
//! they do not. Origin: the question of memory protection in control groups; there is no original program.

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Series, Unit};

use crate::clock::Clock;
use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts, must_fit};
use crate::error::{ScenarioError, Stop};
use crate::expr::Names;
use crate::files::{filesystem_for, make_file};
use crate::fill::{Filler, check_content};
use crate::groups::{self, GroupSpec, GroupUse, Limit, MemoryGroup, Watch, optional};
use crate::number;
use crate::paced::{Paced, PacedReport};
use crate::page::PAGE;
use crate::page_size::PageSize;
use crate::params::params;
use crate::scenario::patterns::Backing;
use crate::scenario::swapbench::Way;
use crate::trial::{COMPRESSED, Trial, metrics};
use crate::workers::{Member, WorkerEnd};

/// Name of the paced process's cgroup.
const SENSITIVE: &str = "sensitive";
/// Index of the value in which a hungry process reports the pages written; the next is the time taken.
const WRITTEN: usize = 0;
const TIME: usize = 1;
/// Number of pages that a hungry process writes before it checks whether it must stop.
const PORTION: u64 = 16;

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Neighbours {
        /// Working set of the latency-sensitive process.
        sensitive: Bytes = "0.4 * memory", min = "256K";
        /// What the working set is: anonymous memory (anon) or a mapped file (file).
        mapping: Backing = "anon";
        /// Number of accesses of the latency-sensitive process beside its neighbours; it makes a quarter as many alone
        /// first. Each is timed.
        accesses: u64 = "8 * sensitive / 4K", min = "64", max = "4294967295";
        /// Pause of the latency-sensitive process after every 32 accesses.
        pause: Nanos = "1ms", max = "1s";
        /// Memory of all hungry processes together.
        hungry: Bytes = "0.9 * memory", min = "256K";
        /// Number of hungry processes, each in a group of its own.
        neighbours: u32 = "1", min = "1", max = "16";
        /// Order in which a hungry process writes its memory, again and again: ascending, or random with every page
        /// once per round.
        order: Way = "random";
        /// Protection of the latency-sensitive group (memory.low); 0 for none.
        low: Bytes = "0";
        /// Further limits of the latency-sensitive group, as KEY=VALUE words without spaces in them: min, max, high,
        /// swap.max, zswap.max, and reclaim=AMOUNT@TIME for requests to memory.reclaim.
        sensitive_limits: String = "";
        /// Limits of each hungry group, written in the same way; also low.
        hungry_limits: String = "";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; or the kind of
        /// memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of anonymous memory: small (huge pages disabled by madvise), huge (enabled by madvise, aligned; if
        /// the kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default (no
        /// madvise).
        page_size: PageSize = "small";
    }
}

impl Neighbours {
    /// Returns the size of the memory of one hungry process.
    fn share(&self) -> Bytes {
        Bytes(self.hungry.0 / u64::from(self.neighbours))
    }

    fn is_file(&self) -> bool {
        self.mapping == Backing::File
    }

    /// Runs a hungry process, which writes its memory again and again until it is asked to stop.
    fn eat(&self, member: &mut Member<'_>, hungry: &Hungry<'_>) -> Result<(), Stop> {
        hungry.groups[member.number as usize].join()?;
        let pages = self.share().pages();
        let memory = self.page_size.map(pages)?;
        let mut written = 0_u64;
        let mut round = 0;
        member.gate();
        let start = hungry.clock.now();
        'all: loop {
            let own = u64::from(member.number) << 32 | round;
            let seed = hungry.seed ^ own.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for page in self.order.over(pages.0, seed) {
                if written.is_multiple_of(PORTION) && member.asked_to_stop() {
                    break 'all;
                }
                memory.fill_page(hungry.filler, page);
                written += 1;
            }
            round += 1;
        }
        member.put(WRITTEN, written);
        member.put(TIME, hungry.clock.now().since(start).0);
        Ok(())
    }
}

/// Data that all hungry processes share.
struct Hungry<'a> {
    groups: &'a [MemoryGroup],
    filler: &'a Filler,
    clock: Clock,
    seed: u64,
}

fn hungry_name(number: u32) -> String {
    format!("hungry-{}", number + 1)
}

impl Scenario for Neighbours {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::time(
            "access-mean",
            "mean access of the latency-sensitive process beside its neighbours"
        )
        .primary(),
        MetricDef::time(
            "access-p50",
            "median access of the latency-sensitive process beside its neighbours"
        ),
        MetricDef::time("access-p90", "90th percentile of these accesses"),
        MetricDef::time("access-p99", "99th percentile of these accesses").primary(),
        MetricDef::time("access-max", "longest of these accesses"),
        MetricDef::time(
            "alone-mean",
            "mean access of the latency-sensitive process before its neighbours started"
        ),
        MetricDef::time(
            "alone-p99",
            "99th percentile of the accesses before the neighbours started"
        ),
        MetricDef::of(
            "slowdown",
            Unit::Count,
            Direction::Lower,
            "access-mean divided by alone-mean"
        ),
        MetricDef::time(
            "sensitive-time",
            "time of all accesses beside the neighbours, with their pauses"
        ),
        MetricDef::count(
            "sensitive-refaults",
            Direction::Lower,
            "pages of the latency-sensitive group that were evicted and came back"
        ),
        MetricDef::count(
            "sensitive-major-faults",
            Direction::Lower,
            "page faults of the latency-sensitive process that waited for a device"
        ),
        MetricDef::time(
            "sensitive-stalled",
            "time in which the latency-sensitive group waited for memory (its memory.pressure)"
        ),
        MetricDef::share(
            "sensitive-kept",
            Direction::Higher,
            "part of the working set that the latency-sensitive group holds at the end"
        ),
        MetricDef::count(
            "low-breaches",
            Direction::Lower,
            "reclaims of the latency-sensitive group although it was below memory.low"
        ),
        MetricDef::of(
            "throughput",
            Unit::BytesPerSecond,
            Direction::Higher,
            "bytes written per second, summed over the hungry processes"
        )
        .primary(),
        MetricDef::count(
            "hungry-refaults",
            Direction::Lower,
            "pages of the hungry groups that were evicted and came back"
        ),
        MetricDef::count(
            "hungry-major-faults",
            Direction::Lower,
            "page faults of the hungry processes that waited for a device"
        ),
        MetricDef::time(
            "hungry-stalled",
            "time in which the hungry groups waited for memory, summed over them"
        ),
        MetricDef::share(
            "fairness",
            Direction::Higher,
            "how evenly groups find their pages in memory: Jain's index of each group's share of accesses without a refault"
        ),
        COMPRESSED,
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)?;
        let anonymous = if self.is_file() { 0 } else { self.sensitive.0 };
        must_fit(Bytes(self.hungry.0.saturating_add(anonymous)), context)?;
        let names = groups::names(context.memory, context.swap_size);
        self.groups(&names)
            .and_then(|groups| groups::check(&groups, context.memory))
            .map_err(|why| ScenarioError::Contradiction {
                scenario: name.to_owned(),
                why,
            })
    }

    fn needs(&self, _form: Form) -> Needs {
        Needs {
            swap: true,
            pressure: true,
            filesystem: self.is_file().then(|| filesystem_for(self.sensitive)),
            groups: true,
            ..self.page_size.needs()
        }
    }

    /// Returns the descriptions of all cgroups, that of the latency-sensitive process first.
    fn groups(&self, names: &Names) -> Result<Vec<GroupSpec>, String> {
        let limits = &self.sensitive_limits;
        let sensitive = GroupSpec::read(&format!("{SENSITIVE} {limits}"), names)?;
        let mut groups = vec![sensitive.with(Limit::Low, optional(self.low))];
        for number in 0..self.neighbours {
            let text = format!("{} {}", hungry_name(number), self.hungry_limits);
            groups.push(GroupSpec::read(&text, names)?);
        }
        Ok(groups)
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let specs = groups::of_trial(trial.subject, |names| self.groups(names))?;
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        let groups = specs.iter().map(MemoryGroup::create);
        let groups = groups.collect::<Result<Vec<_>, Stop>>()?;
        trial.settle();

        trial.phase("fill");
        let path = trial.place.work_dir.join("pagetide-working-set");
        if self.is_file() {
            make_file(&path, self.sensitive.pages().0, &filler)?;
        }
        let (paced_group, hungry_groups) = groups.split_at(1);
        let paced = Paced {
            name: SENSITIVE,
            group: &paced_group[0],
            file: self.is_file().then_some(path.as_path()),
            filler: &filler,
            page_size: self.page_size,
            pages: self.sensitive.pages(),
            used: self.sensitive.pages(),
            pause: self.pause,
            alone: self.accesses / 4,
            beside: Some(self.accesses),
        };
        let mut sensitive = paced.start(trial)?;
        sensitive.open()?;
        trial.phase("alone");
        sensitive.gathered()?;
        let clock = trial.place.clock;
        let hungry = Hungry {
            groups: hungry_groups,
            filler: &filler,
            clock,
            seed: trial.subject.seed,
        };
        let mut eaters = trial.team("hungry process", self.neighbours, |member| {
            self.eat(member, &hungry)
        })?;
        eaters.gathered()?;

        trial.phase("beside");
        let watched: Vec<_> = groups.iter().zip(&specs).collect();
        let mut watch = Watch::begin(&watched, clock);
        eaters.open()?;
        sensitive.open()?;
        while !sensitive.has_gathered()? {
            eaters.has_gathered()?;
            watch.step()?;
            trial.tick();
        }
        trial.compressed();
        let watched = watch.end(trial);
        let kept = groups[0].used();
        eaters.ask_to_stop();
        let eaten = eaters.join()?;
        trial.phase("report");
        sensitive.open()?;
        for ended in sensitive.join()? {
            trial.account(ended.usage);
            self.report(trial, &PacedReport::of(&ended), &watched.uses, &eaten);
        }
        let kept = kept.0 as f64 / self.sensitive.0 as f64;
        trial.metric("sensitive-kept", kept.min(1.0));
        Ok(())
    }
}

impl Neighbours {
    fn report(
        &self,
        trial: &mut Trial<'_>,
        sensitive: &PacedReport,
        uses: &[GroupUse],
        eaten: &[WorkerEnd],
    ) {
        trial.must_count(
            "accesses of the latency-sensitive process",
            self.accesses.next_multiple_of(crate::paced::BURST),
            sensitive.count,
        );
        trial.metric("access-mean", sensitive.mean);
        for (name, value) in [
            ("access-p50", sensitive.p50),
            ("access-p90", sensitive.p90),
            ("access-p99", sensitive.p99),
            ("access-max", sensitive.max),
            ("alone-p99", sensitive.alone_p99),
            ("sensitive-major-faults", sensitive.major_faults),
        ] {
            trial.metric(name, value as f64);
        }
        trial.metric("alone-mean", sensitive.alone_mean);
        trial.metric("slowdown", sensitive.mean / sensitive.alone_mean.max(1.0));
        trial.time_metric("sensitive-time", sensitive.time);

        let refaults = |used: &GroupUse| used.refaults_anon() + used.refaults_file();
        let (own, others) = uses.split_at(uses.len().min(1));
        let stalled = |uses: &[GroupUse]| -> Option<u64> {
            uses.iter()
                .map(|used| used.stalled.map(|time| time.0))
                .sum()
        };
        for (name, uses) in [("sensitive-stalled", own), ("hungry-stalled", others)] {
            match stalled(uses) {
                Some(time) => trial.time_metric(name, Nanos(time)),
                None => trial.absent(name, "not on this kernel"),
            }
        }
        let count = |uses: &[GroupUse]| uses.iter().map(refaults).sum::<u64>() as f64;
        trial.metric("sensitive-refaults", count(own));
        trial.metric("hungry-refaults", count(others));
        let breaches = own.iter().map(|used| used.events("low")).sum::<u64>();
        trial.metric("low-breaches", breaches as f64);

        let mut throughput = 0.0;
        let mut faults = 0;
        let mut accesses = vec![sensitive.count];
        for ended in eaten {
            trial.account(ended.usage);
            let (written, time) = (ended.values[WRITTEN], Nanos(ended.values[TIME]));
            throughput += written as f64 * PAGE as f64 / time.secs().max(f64::MIN_POSITIVE);
            faults += ended.usage.major_faults;
            accesses.push(written);
        }
        trial.metric("throughput", throughput);
        trial.metric("hungry-major-faults", faults as f64);
        let hits: Vec<f64> = uses
            .iter()
            .zip(&accesses)
            .map(|(used, accesses)| share_of_hits(refaults(used), *accesses))
            .collect();
        trial.metric("fairness", fairness(&hits));
        trial.series(
            &Series::new("groups")
                .int(
                    "accesses",
                    Unit::Count,
                    accesses.iter().map(|n| number::signed(*n)),
                )
                .int(
                    "refaults",
                    Unit::Count,
                    uses.iter().map(|used| number::signed(refaults(used))),
                )
                .float("hits", Unit::Share, hits.iter().copied()),
        );
    }
}

/// Returns the fraction of accesses whose page was in memory.
fn share_of_hits(refaults: u64, accesses: u64) -> f64 {
    (1.0 - refaults as f64 / accesses.max(1) as f64).max(0.0)
}

/// Returns Jain's fairness index of shares: 1 if all are equal, 1 divided by their number if one process has
/// everything. Source: Jain, Chiu and Hawe, "A quantitative measure of fairness" (1984), equation 1.
fn fairness(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

/// Definition of the scenario `neighbours`.
pub(crate) static NEIGHBOURS: Definition = Definition::of::<Neighbours>(
    Texts {
        name: "neighbours",
        summary: "what hungry neighbours cost a latency-sensitive program, and what protects it",
        docs: "A process in a memory group of its own holds a working set of `sensitive` bytes. It makes bursts of 32 random \
               accesses with a `pause` between them and times each, first alone, then beside `neighbours` hungry processes, each \
               in its own group, which write `hungry` bytes again and again. Each side fits into memory alone, both \
               together do not. `low` protects the working set (memory.low); `sensitive-limits` and `hungry-limits` set any other \
               limit. Metrics are those of each side; the counters of each group are in the record as memory.stat-NAME, \
               memory.events-NAME and pressure-NAME, and over time as the series group-NAME, with the names sensitive, hungry-1, \
               hungry-2 and so on.",
        origin: "none: the question of memory protection between control groups (cgroup-v2.rst, memory.low).",
        repaired: "",
    },
    Bytes::from_mib(1024),
    &[],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equal_shares_and_falls_to_one_part_of_the_whole() {
        for (shares, expected) in [
            (&[0.5, 0.5][..], 1.0),
            (&[1.0, 0.0], 0.5),
            (&[0.9, 0.9, 0.9], 1.0),
            (&[1.0, 0.5], 0.9),
            (&[0.0, 0.0], 1.0),
        ] {
            assert!((fairness(shares) - expected).abs() < 1e-12, "{shares:?}");
        }
        assert!((share_of_hits(25, 100) - 0.75).abs() < 1e-12);
        assert!(share_of_hits(300, 100).abs() < 1e-12);
    }
}
