//! A victim: a process with a warm working set whose cached pages other processes evict.

use std::fs::File;
use std::path::Path;

use pagetide_quantity::{Nanos, Pages};
use pagetide_reference::Rng;

use crate::clock::{self, Clock};
use crate::error::Stop;
use crate::fill::Filler;
use crate::harness::LockedBuffer;
use crate::mapping::Mapping;
use crate::number;
use crate::page_size::PageSize;
use crate::touch::{Amount, Offset, Recorder, Touch};
use crate::trial::Trial;
use crate::workers::{Member, Team, Usage};

/// Number of accesses between two pauses.
const BURST: usize = 32;

/// Measurements of a victim process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VictimReport {
    /// Number of accesses to the working set.
    pub count: u64,
    /// Sum of the access times in nanoseconds.
    pub sum: u64,
    /// 99th percentile of the access times in nanoseconds.
    pub p99: u64,
    /// Longest access time in nanoseconds.
    pub max: u64,
    /// Number of pages of the working set that had to be read again.
    pub refaults: u64,
}

/// Parameters of a victim process.
#[derive(Clone, Copy)]
pub(crate) struct Victim<'a> {
    /// File that the process maps; `None` for anonymous memory.
    pub file: Option<&'a Path>,
    /// Generator of the content, for anonymous memory.
    pub filler: &'a Filler,
    /// Page size, for anonymous memory.
    pub page_size: PageSize,
    /// Size of the working set.
    pub pages: Pages,
    /// Pause between two bursts of accesses.
    pub pause: Nanos,
}

impl Victim<'_> {
    /// Starts the process. Its working set is in memory when it arrives at its gate.
    pub(crate) fn start(self, trial: &Trial<'_>) -> Result<Team, Stop> {
        let (clock, seed) = (trial.place.clock, trial.subject.seed);
        trial.team("victim", 1, |member| self.live(member, clock, seed))
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
        Ok(mapping)
    }

    fn live(self, member: &mut Member<'_>, clock: Clock, seed: u64) -> Result<(), Stop> {
        let mapping = self.memory()?;
        let mut recorder = Recorder::without_log()?;
        let mut batch = LockedBuffer::<u32>::new(BURST)?;
        let mut rng = Rng::stream(seed, "victim");
        // Read twice, so that the kernel sees the pages as used more than once.
        for _ in 0..2 {
            mapping.read_all();
        }
        let touch = Touch::mapping(&mapping, Amount::Word, Offset::Spread);
        member.gate();
        let before = Usage::own();
        while !member.asked_to_stop() {
            for item in batch.iter_mut() {
                *item = rng.below_u32(number::narrow(self.pages.0));
            }
            recorder.touch(clock, &touch, &batch);
            clock::sleep(self.pause);
        }
        let usage = Usage::own().since(before);
        let values = [
            recorder.count(),
            recorder.sum(),
            recorder.quantile(0.99),
            recorder.range().1,
            usage.major_faults,
        ];
        for (index, value) in values.into_iter().enumerate() {
            member.put(index, value);
        }
        Ok(())
    }
}

/// Ends a victim process and returns its measurements. Fails if the process failed.
pub(crate) fn end(trial: &mut Trial<'_>, team: Team) -> Result<VictimReport, Stop> {
    team.ask_to_stop();
    let mut all = VictimReport::default();
    for ended in team.join()? {
        trial.account(ended.usage);
        let [count, sum, p99, max, refaults, ..] = ended.values;
        all = VictimReport {
            count,
            sum,
            p99,
            max,
            refaults,
        };
    }
    Ok(all)
}
