//! A process with a warm working set that suffers from what others do to the page cache.

use std::fs::File;
use std::path::Path;

use pagetide_record::{Nanos, Pages};
use pagetide_reference::Rng;

use crate::clock;
use crate::error::Stop;
use crate::harness::Locked;
use crate::mapping::Mapping;
use crate::number;
use crate::touch::{Amount, Offset, Recorder, Touch};
use crate::trial::Trial;
use crate::workers::{Team, Usage};

/// Accesses between two pauses.
const BURST: usize = 32;

/// What it suffered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Suffered {
    /// Accesses made.
    pub count: u64,
    /// Sum of their times.
    pub sum: u64,
    /// Time that 99 % of them do not exceed.
    pub p99: u64,
    /// Longest.
    pub max: u64,
    /// Pages of the warm set that had to be read again.
    pub refaults: u64,
}

/// Starts a victim over the first `pages` of a file; it is warm when it arrives at its gate, and pauses for `pause`
/// between bursts of accesses.
pub(crate) fn start(
    trial: &Trial<'_>,
    path: &Path,
    pages: Pages,
    pause: Nanos,
) -> Result<Team, Stop> {
    let clock = trial.clock;
    trial.team("victim", 1, |member| {
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(Stop::system(format!("cannot open {}", path.display())))?;
        let mapping = Mapping::file(&file, pages)?;
        // Used at random, as a database's index is: without readahead a miss costs one page.
        mapping.advise(libc::MADV_RANDOM);
        let mut recorder = Recorder::without_log()?;
        let mut batch = Locked::<u32>::new(BURST)?;
        let mut rng = Rng::stream(trial.seed, "victim");
        // Twice, so that the kernel knows the pages as used more than once.
        for _ in 0..2 {
            mapping.read_all();
        }
        let touch = Touch::mapping(&mapping, Amount::Word, Offset::Spread);
        member.gate();
        let before = Usage::own();
        while !member.asked_to_stop() {
            for item in batch.iter_mut() {
                *item = rng.below_u32(number::narrow(pages.0));
            }
            recorder.touch(clock, &touch, &batch);
            clock::sleep(pause);
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
    })
}

/// Ends a victim and says what it suffered.
pub(crate) fn end(trial: &mut Trial<'_>, team: Team) -> Result<Suffered, Stop> {
    team.ask_to_stop();
    let mut all = Suffered::default();
    for ended in team.join()? {
        trial.account(ended.usage);
        let [count, sum, p99, max, refaults, ..] = ended.values;
        all = Suffered {
            count,
            sum,
            p99,
            max,
            refaults,
        };
    }
    Ok(all)
}
