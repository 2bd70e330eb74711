//! How much memory per second can processes fill when it does not fit?
//!
//! n processes fill mappings that together exceed the memory, then unmap them: this is how patches to swap and reclaim
//! are measured today. Origin: usemem of vm-scalability. It reports throughput from a separate clock in each process;
//! here the content of the pages is defined too, and the time to free is measured while all others wait.

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Series, Unit};

use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts, must_fit};
use crate::error::{ScenarioError, Stop};
use crate::fill::{Filler, check_content};
use crate::number;
use crate::page::PAGE;
use crate::page_size::PageSize;
use crate::params::params;
use crate::scenario::swapbench::{Way, usages};
use crate::trial::{COMPRESSED, Trial, metrics};
use crate::workers::WorkerEnd;

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Usemem {
        /// Number of concurrent processes.
        processes: u32 = "4", min = "1", max = "4096";
        /// Memory of each process.
        size: Bytes = "1.5 * memory / processes", min = "64K";
        /// How often each process writes all of its memory; the first pass fills it.
        passes: u32 = "2", min = "1", max = "100";
        /// Order of the writes: ascending, or random with every page once per pass.
        order: Way = "ascending";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; or the kind of
        /// memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1";
        /// Page size of the processes' memory: small (huge pages disabled by madvise), huge (enabled by madvise,
        /// aligned; if the kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default
        /// (no madvise).
        page_size: PageSize = "small";
    }
}

impl Scenario for Usemem {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::of(
            "throughput",
            Unit::BytesPerSecond,
            Direction::Higher,
            "bytes written per second, summed over the processes"
        )
        .primary(),
        MetricDef::of(
            "throughput-mean",
            Unit::BytesPerSecond,
            Direction::Higher,
            "bytes written per second, mean over the processes"
        ),
        MetricDef::of(
            "throughput-min",
            Unit::BytesPerSecond,
            Direction::Higher,
            "bytes written per second by the slowest process"
        ),
        MetricDef::time(
            "write",
            "time from opening the gate to the last write of the slowest process"
        ),
        MetricDef::time(
            "free",
            "time to unmap the memory, summed over the processes"
        )
        .primary(),
        MetricDef::count(
            "major-faults",
            Direction::Lower,
            "page faults of all processes that waited for a device"
        ),
        COMPRESSED,
        MetricDef::count(
            "pages-written",
            Direction::Neutral,
            "pages written by all processes"
        ),
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)?;
        must_fit(
            Bytes(self.size.0.saturating_mul(u64::from(self.processes))),
            context,
        )
    }

    fn needs(&self, _form: Form) -> Needs {
        Needs {
            swap: true,
            pressure: true,
            ..self.page_size.needs()
        }
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        trial.settle();
        let (clock, pages) = (trial.place.clock, self.size.pages());
        trial.phase("start");
        let mut team = trial.team("process", self.processes, |member| {
            let memory = self.page_size.map(pages)?;
            let mut written = 0;
            member.gate();
            let start = clock.now();
            for pass in 0..u64::from(self.passes) {
                let seed = trial.subject.seed
                    ^ (u64::from(member.number) << 32 | pass).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                for page in self.order.over(pages.0, seed) {
                    memory.fill_page(&filler, page);
                    written += 1;
                }
            }
            member.put(0, clock.now().since(start).0);
            member.put(1, written);
            member.gate();
            let start = clock.now();
            drop(memory);
            member.put(2, clock.now().since(start).0);
            Ok(())
        })?;
        team.gathered()?;
        trial.phase("write");
        team.open()?;
        team.gathered()?;
        trial.compressed();
        trial.phase("free");
        team.open()?;
        let ended = team.join()?;
        trial.phase("report");
        self.report(trial, &ended);
        Ok(())
    }
}

impl Usemem {
    fn report(&self, trial: &mut Trial<'_>, ended: &[WorkerEnd]) {
        let expected = self.size.pages().0 * u64::from(self.passes);
        let mut throughputs = Vec::with_capacity(ended.len());
        for member in ended {
            trial.account(member.usage);
            let [time, written, ..] = member.values;
            trial.must_count("pages written by a process", expected, written);
            throughputs.push(written as f64 * PAGE as f64 / Nanos(time).secs());
        }
        let sum: f64 = throughputs.iter().sum();
        trial.metric("throughput", sum);
        trial.metric("throughput-mean", sum / throughputs.len() as f64);
        let least = throughputs.iter().copied().fold(f64::INFINITY, f64::min);
        trial.metric("throughput-min", least);
        let slowest = ended.iter().map(|member| member.values[0]).max();
        trial.time_metric("write", Nanos(slowest.unwrap_or(0)));
        let total = |of: fn(&WorkerEnd) -> u64| ended.iter().map(of).sum::<u64>() as f64;
        trial.metric("free", total(|member| member.values[2]));
        trial.metric("major-faults", total(|member| member.usage.major_faults));
        trial.metric("pages-written", total(|member| member.values[1]));
        let column = |index: usize| {
            ended
                .iter()
                .map(move |member| number::signed(member.values[index]))
        };
        trial.series(
            &Series::new("processes")
                .int("write", Unit::Nanos, column(0))
                .int("free", Unit::Nanos, column(2))
                .float(
                    "throughput",
                    Unit::BytesPerSecond,
                    throughputs.iter().copied(),
                ),
        );
        trial.series(&usages(ended));
    }
}

/// Definition of the scenario `usemem`.
pub(crate) static USEMEM: Definition = Definition::of::<Usemem>(
    Texts {
        name: "usemem",
        summary: "how fast processes fill and free memory that does not fit",
        docs: "`processes` processes, which wait at a gate, write `size` bytes each `passes` times in the given order. When all \
               are done they unmap their memory. Throughput per process and in total, time to free, and system time are what \
               patches to swap and reclaim report.",
        origin: "usemem of vm-scalability, as in today's swap and reclaim patches (-n PROCESSES SIZE under a limit).",
        repaired: "",
    },
    Bytes::from_mib(16 * 1024),
    &[],
);
