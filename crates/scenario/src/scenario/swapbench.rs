//! How fast do many processes read and write memory that is mostly in swap?
//!
//! A parent locks most of the memory, then processes fill and read back mappings that together are much larger than the
//! rest. Origin: swapbench (2009), run as `-a 110 -p 30 -l 10` on a machine of 128 MB. It did not say in which order
//! and how often memory was touched, whether processes waited for each other, or what the pages contained, and printed
//! only a mean. Here all of that is a recorded parameter, every page contains data of a given compressibility, and
//! every process, pass and operation has a separate row.

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Series, Unit};

use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts, must_fit};
use crate::error::{ScenarioError, Stop};
use crate::fill::{Filler, check_content};
use crate::number;
use crate::order::Order;
use crate::page_size::PageSize;
use crate::params::{choice, params};
use crate::trial::{COMPRESSED, Trial, metrics};
use crate::workers::{Usage, WorkerEnd};

choice! {
    /// Order in which a process touches its pages.
    pub(crate) enum Way {
        /// From the first page to the last.
        Ascending = "ascending",
        /// In scattered order, each page once.
        Random = "random",
    }
}

choice! {
    /// When processes wait for each other.
    pub(crate) enum Barrier {
        /// Only before the first write.
        Start = "start",
        /// Before every operation.
        Each = "each",
    }
}

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Swapbench {
        /// Memory that the parent fills and locks (-a); 0 if a memory limit takes its place. The original's 110 of 128
        /// MB and 30 times 10 MB need a swap device outside of that memory: zram stores its data in it.
        locked: Bytes = "0.4 * memory";
        /// Number of concurrent processes (-p).
        processes: u32 = "max(4, 30 * scale)", min = "1", max = "1000";
        /// Memory of each process (-l).
        size: Bytes = "1.1 * memory / processes", min = "64K";
        /// How often each process writes and then reads all of its memory.
        passes: u32 = "1", min = "1", max = "5";
        /// Order of access within a process: ascending, or random with every page once.
        order: Way = "ascending";
        /// Where processes wait for each other: before the first write (start), or before each operation (each).
        barrier: Barrier = "each", as_written = "start";
        /// Compressed size of a page as a fraction of its size: 0.05 to 0.75, or 1 for incompressible; as written also
        /// 0, zeros; or the kind of memory that the pages are like, whose pages differ in how they compress.
        content: Content = "0.35", max = "1", as_written = "0";
        /// Page size of the mappings: small (huge pages disabled by madvise), huge (enabled by madvise, aligned; if the
        /// kernel has several sizes, each has a setting such as thp/hugepages-64kB/enabled), or default (no madvise).
        page_size: PageSize = "small", as_written = "default";
    }
}

/// Fails if the parent would lock too much memory. The kernel and the other processes need the rest.
pub(crate) fn check_locked(
    name: &str,
    locked: Bytes,
    context: &Context,
) -> Result<(), ScenarioError> {
    let most = Bytes(context.memory.0 / 100 * 93);
    if locked > most {
        return Err(ScenarioError::TooMuchLocked {
            scenario: name.to_owned(),
            locked,
            memory: context.memory,
            most,
        });
    }
    Ok(())
}

impl Way {
    /// Returns the pages `0..pages` in this order. `seed` selects one of the scattered orders.
    pub(crate) fn over(self, pages: u64, seed: u64) -> Order {
        match self {
            Self::Ascending => Order::ascending(pages),
            Self::Random => Order::scattered(pages, seed),
        }
    }
}

impl Scenario for Swapbench {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::time(
            "read-mean",
            "time to read all memory of a process, mean over processes and passes"
        )
        .primary(),
        MetricDef::time(
            "write-mean",
            "time to write all memory of a process, mean over processes and passes"
        )
        .primary(),
        MetricDef::time(
            "read-max",
            "longest time of a process to read all of its memory"
        ),
        MetricDef::time(
            "write-max",
            "longest time of a process to write all of its memory"
        ),
        MetricDef::time(
            "total",
            "time from the first write to the end of the last process"
        ),
        MetricDef::count(
            "major-faults",
            Direction::Lower,
            "page faults of all processes that waited for a device"
        ),
        MetricDef::count(
            "pages-written",
            Direction::Neutral,
            "pages written by all processes"
        ),
        MetricDef::count(
            "pages-read",
            Direction::Neutral,
            "pages read by all processes"
        ),
        COMPRESSED,
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        check_content(name, &self.content, form)?;
        check_locked(name, self.locked, context)?;
        let all = self.size.0.saturating_mul(u64::from(self.processes));
        must_fit(Bytes(all.saturating_add(self.locked.0)), context)
    }

    fn needs(&self, form: Form) -> Needs {
        Needs {
            swap: true,
            pressure: form == Form::Repaired,
            ..self.page_size.needs()
        }
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let filler = Filler::new(&self.content, trial.subject.seed)?;
        trial.settle();

        trial.phase("lock");
        let parent = self
            .page_size
            .map(self.locked.pages().max(crate::params::Pages(1)))?;
        if self.locked.0 > 0 {
            // The parent's memory has content too, otherwise it would share the zero page and use no memory.
            parent.advise(libc::MADV_DONTFORK);
            parent.fill(&filler, 0, parent.pages());
            parent.lock()?;
        }

        trial.phase("start");
        let (clock, pages) = (trial.place.clock, self.size.pages());
        let mut team = trial.team("process", self.processes, |member| {
            let memory = self.page_size.map(pages)?;
            let mut written = 0;
            let mut read = 0;
            for pass in 0..self.passes {
                let seed = trial.subject.seed
                    ^ u64::from(member.number * 16 + pass).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let slot = 2 + 2 * pass as usize;
                if pass == 0 || self.barrier == Barrier::Each {
                    member.gate();
                }
                let start = clock.now();
                for page in self.order.over(pages.0, seed) {
                    memory.fill_page(&filler, page);
                    written += 1;
                }
                member.put(slot, clock.now().since(start).0);
                if self.barrier == Barrier::Each {
                    member.gate();
                }
                let start = clock.now();
                for page in self.order.over(pages.0, seed.rotate_left(32)) {
                    memory.read_page(page);
                    read += 1;
                }
                member.put(slot + 1, clock.now().since(start).0);
            }
            member.put(0, written);
            member.put(1, read);
            Ok(())
        })?;

        let start = trial.place.clock.now();
        for pass in 0..self.passes {
            if pass == 0 || self.barrier == Barrier::Each {
                team.gathered()?;
                trial.phase("write");
                team.open()?;
            }
            if self.barrier == Barrier::Each {
                team.gathered()?;
                trial.compressed();
                trial.phase("read");
                team.open()?;
            }
        }
        if self.barrier == Barrier::Start {
            let why = "processes end without waiting for each other";
            trial.absent("compressed", why);
        }
        let ended = team.join()?;
        trial.time_metric("total", trial.place.clock.now().since(start));
        trial.phase("report");
        self.report(trial, &ended);
        Ok(())
    }
}

impl Swapbench {
    fn report(&self, trial: &mut Trial<'_>, ended: &[WorkerEnd]) {
        let expected = self.size.pages().0 * u64::from(self.passes);
        let mut rows: Vec<[u64; 4]> = Vec::new();
        for (member, process) in ended.iter().zip(0_u64..) {
            trial.account(member.usage);
            trial.must_count("pages written by a process", expected, member.values[0]);
            trial.must_count("pages read by a process", expected, member.values[1]);
            for pass in 0..self.passes {
                for operation in 0..2 {
                    let time = member.values[2 + 2 * pass as usize + operation];
                    rows.push([process, u64::from(pass), operation as u64, time]);
                }
            }
        }
        for (operation, name) in [(0, "write"), (1, "read")] {
            let times = rows
                .iter()
                .filter(|row| row[2] == operation)
                .map(|row| row[3]);
            let (count, sum) = (times.clone().count(), times.clone().sum::<u64>());
            trial.metric(&format!("{name}-mean"), sum as f64 / count as f64);
            trial.time_metric(&format!("{name}-max"), Nanos(times.max().unwrap_or(0)));
        }
        let sum = |of: fn(&WorkerEnd) -> u64| ended.iter().map(of).sum::<u64>() as f64;
        trial.metric("pages-written", sum(|member| member.values[0]));
        trial.metric("pages-read", sum(|member| member.values[1]));
        trial.metric("major-faults", sum(|member| member.usage.major_faults));
        let column = |index: usize| rows.iter().map(move |row| number::signed(row[index]));
        trial.series(
            &Series::new("processes")
                .int("process", Unit::Count, column(0))
                .int("pass", Unit::Count, column(1))
                .int("is-read", Unit::Count, column(2))
                .int("time", Unit::Nanos, column(3)),
        );
        trial.series(&usages(ended));
    }
}

/// Returns the resource usage of each process as a series.
pub(crate) fn usages(ended: &[WorkerEnd]) -> Series {
    let column = |of: fn(&Usage) -> u64| {
        ended
            .iter()
            .map(move |member| number::signed(of(&member.usage)))
    };
    Series::new("usage")
        .int("user", Unit::Nanos, column(|usage| usage.user.0))
        .int("system", Unit::Nanos, column(|usage| usage.system.0))
        .int(
            "minor-faults",
            Unit::Count,
            column(|usage| usage.minor_faults),
        )
        .int(
            "major-faults",
            Unit::Count,
            column(|usage| usage.major_faults),
        )
}

/// Definition of the scenario `swapbench`.
pub(crate) static SWAPBENCH: Definition = Definition::of::<Swapbench>(
    Texts {
        name: "swapbench",
        summary: "how fast many processes read and write memory that is mostly in swap",
        docs: "A parent fills and locks `locked` bytes. `processes` processes, which wait at a barrier until all have arrived, \
               write and read `size` bytes each, page by page in the given order. Both operations are timed for every \
               process and pass. Series `processes` has a row for each, and series `usage` the CPU time and faults of each process.",
        origin: "swapbench (2009) with its readstats: -a 110 -p 30 -l 10 in a machine of 128 MB; average read 0.560072 s \
                 to 0.433929 s, write 0.560866 s to 0.430475 s with clustered swap-out.",
        repaired: "The order of access, the number of passes, the barrier and the content of pages were not documented, and only a \
                   mean was printed. As written, pages contain zeros, which zram, zswap and since 6.12 the swap \
                   code itself never pass to a device.",
    },
    Bytes::from_mib(128),
    &[],
);
