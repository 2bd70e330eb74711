//! A paced process: a latency-sensitive process in a memory cgroup. It makes short bursts of accesses to its working
//! set, pauses between them, and times each access, first alone and then while the processes of other cgroups run.

use std::fs::File;
use std::path::Path;

use pagetide_quantity::{Nanos, Pages};
use pagetide_reference::Rng;

use crate::clock::{self, Clock};
use crate::error::Stop;
use crate::fill::Filler;
use crate::groups::MemoryGroup;
use crate::harness::LockedBuffer;
use crate::mapping::Mapping;
use crate::number;
use crate::page_size::PageSize;
use crate::touch::{Amount, Offset, Recorder, Touch};
use crate::trial::Trial;
use crate::workers::{Member, Team, Usage, WorkerEnd};

/// Number of accesses between two pauses.
pub(crate) const BURST: u64 = 32;

/// Description of a paced process.
#[derive(Clone, Copy)]
pub(crate) struct Paced<'a> {
    /// Name of the process, for messages and for its random numbers.
    pub name: &'static str,
    /// Memory cgroup that the process joins.
    pub group: &'a MemoryGroup,
    /// File that the process maps; `None` for anonymous memory.
    pub file: Option<&'a Path>,
    /// Generator of the content of anonymous memory.
    pub filler: &'a Filler,
    /// Page size of anonymous memory.
    pub page_size: PageSize,
    /// Size of the memory of the process.
    pub pages: Pages,
    /// Number of pages, from the first on, that are accessed; the other pages are only filled.
    pub used: Pages,
    /// Pause between two bursts of accesses.
    pub pause: Nanos,
    /// Number of accesses alone, before the processes of other cgroups start; rounded up to whole bursts.
    pub alone: u64,
    /// Number of accesses while the others run, rounded up to whole bursts; `None` to go on until asked to stop.
    pub beside: Option<u64>,
}

/// Measurements of a paced process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacedReport {
    /// Mean access time in nanoseconds before the other groups started.
    pub alone_mean: f64,
    /// 99th percentile of the access times in nanoseconds before the other groups started.
    pub alone_p99: u64,
    /// Number of accesses beside the other groups.
    pub count: u64,
    /// Mean access time in nanoseconds beside the other groups.
    pub mean: f64,
    /// Median of the access times beside the other groups, in nanoseconds.
    pub p50: u64,
    /// 90th percentile of the access times beside the other groups, in nanoseconds.
    pub p90: u64,
    /// 99th percentile of the access times beside the other groups, in nanoseconds.
    pub p99: u64,
    /// Longest access time beside the other groups, in nanoseconds.
    pub max: u64,
    /// Total time of the accesses beside the other groups, including pauses.
    pub time: Nanos,
    /// Number of major page faults during the accesses beside the other groups.
    pub major_faults: u64,
}

impl Paced<'_> {
    /// Starts the process. It arrives at three gates: before its accesses alone, before its accesses beside the others,
    /// and after the latter.
    pub(crate) fn start(self, trial: &Trial<'_>) -> Result<Team, Stop> {
        let (clock, seed) = (trial.place.clock, trial.subject.seed);
        trial.team(self.name, 1, |member| self.live(member, clock, seed))
    }

    fn memory(self) -> Result<Mapping, Stop> {
        let Some(path) = self.file else {
            let mapping = self.page_size.map(self.pages)?;
            mapping.fill(self.filler, 0, self.pages.0);
            return Ok(mapping);
        };
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(Stop::system(format!("cannot open {}", path.display())))?;
        let mapping = Mapping::file(&file, self.pages)?;
        // Random access, like the index of a database: without readahead a miss costs one page.
        mapping.advise(libc::MADV_RANDOM);
        mapping.read_all();
        Ok(mapping)
    }

    fn live(self, member: &mut Member<'_>, clock: Clock, seed: u64) -> Result<(), Stop> {
        self.group.join()?;
        let mut rng = Rng::stream(seed, self.name);
        let mut batch = LockedBuffer::<u32>::new(number::index(BURST))?;
        let mut alone = Recorder::without_log()?;
        let mut beside = Recorder::without_log()?;
        let mapping = self.memory()?;
        let touch = Touch::mapping(&mapping, Amount::Word, Offset::Spread);
        let mut burst = |recorder: &mut Recorder<'_>| {
            for item in batch.iter_mut() {
                *item = rng.below_u32(number::narrow(self.used.0));
            }
            recorder.touch(clock, &touch, &batch);
            clock::sleep(self.pause);
        };
        member.gate();
        for _ in 0..self.alone.div_ceil(BURST) {
            burst(&mut alone);
        }
        member.put(0, alone.count());
        member.put(1, alone.sum());
        member.put(2, alone.quantile(0.99));
        member.gate();
        let (start, before) = (clock.now(), Usage::own());
        match self.beside {
            Some(accesses) => {
                for _ in 0..accesses.div_ceil(BURST) {
                    burst(&mut beside);
                }
            }
            None => {
                while !member.asked_to_stop() {
                    burst(&mut beside);
                }
            }
        }
        let time = clock.now().since(start);
        let faults = Usage::own().since(before).major_faults;
        let values = [
            beside.count(),
            beside.sum(),
            beside.quantile(0.5),
            beside.quantile(0.9),
            beside.quantile(0.99),
            beside.range().1,
            time.0,
            faults,
        ];
        for (index, value) in (3..).zip(values) {
            member.put(index, value);
        }
        member.gate();
        Ok(())
    }
}

impl PacedReport {
    /// Converts what a paced process reported at its end to its measurements.
    pub(crate) fn of(ended: &WorkerEnd) -> Self {
        let mean = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
        let [
            alone,
            alone_sum,
            alone_p99,
            count,
            sum,
            p50,
            p90,
            p99,
            max,
            time,
            major_faults,
            ..,
        ] = ended.values;
        Self {
            alone_mean: mean(alone_sum, alone),
            alone_p99,
            count,
            mean: mean(sum, count),
            p50,
            p90,
            p99,
            max,
            time: Nanos(time),
            major_faults,
        }
    }
}
