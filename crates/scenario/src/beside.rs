//! Runs two programs at the same time until both have ended.

use pagetide_quantity::{Bytes, Nanos};

use crate::clock::{self, Clock};
use crate::error::Stop;
use crate::launch::Launch;
use crate::running::{Ending, Reaped, RunningProgram, kill_all};
use crate::session::{LoadRun, wait};
use crate::workers::ProcessUsage;

/// Grace period for processes that a program left behind. After it they are killed.
const GRACE: Nanos = Nanos::from_secs(1);
/// Polling interval while waiting for leftover processes to exit.
const POLL: Nanos = Nanos::from_millis(1);
/// Interval at which progress is reported to the arena.
const SECOND: Nanos = Nanos::from_secs(1);

/// Results of two programs that ran at the same time.
pub(crate) struct PairRun {
    /// Result of each program, in the order in which they were started.
    pub runs: [LoadRun; 2],
    /// Resource usage of each reaped process. It includes the children that the process itself reaped.
    pub processes: Vec<ProcessUsage>,
    /// Maximum resident set size of any reaped process.
    pub peak: Bytes,
}

/// A program of the pair.
struct Member {
    program: RunningProgram,
    /// How the program's first process ended, and when; `None` while it is running.
    end: Option<(Ending, Nanos)>,
}

/// Starts both programs in order and waits until both have ended. At the time limit both are killed. Calls `tick` at
/// least every second.
pub(crate) fn run(
    clock: Clock,
    limit: Nanos,
    launches: [&Launch<'_>; 2],
    tick: &dyn Fn(),
) -> Result<PairRun, Stop> {
    let mut reaped = Reaped::default();
    let started = clock.now();
    let start = |launch: &Launch<'_>| {
        let program = launch.start(clock)?;
        Ok::<_, Stop>(Member { program, end: None })
    };
    let mut pair = [start(launches[0])?, start(launches[1])?];
    let mut is_expired = false;
    while pair.iter().any(|member| member.end.is_none()) {
        let gone = clock.now().since(started);
        if gone >= limit && !is_expired {
            is_expired = true;
            kill_all();
        }
        let left = limit.since(gone);
        let time = if is_expired { SECOND } else { left.min(SECOND) };
        let mut events = Vec::with_capacity(6);
        for member in pair.iter().filter(|member| member.end.is_none()) {
            events.extend(member.program.waits_for());
        }
        wait(&mut events, time);
        let mut of_program = events.chunks(3);
        for member in pair.iter_mut().filter(|member| member.end.is_none()) {
            if member.program.take(of_program.next().unwrap_or_default()) {
                let elapsed = clock.now().since(member.program.began);
                let ending = member.program.ending(&mut reaped);
                let ending = if is_expired {
                    Ending::TimeLimit
                } else {
                    ending
                };
                member.end = Some((ending, elapsed));
            }
        }
        tick();
    }
    for member in &pair {
        member.program.could_start()?;
    }
    let left_behind = end_of_others(clock, &mut pair, &mut reaped, tick);
    let mut ended = pair
        .into_iter()
        .zip(left_behind)
        .map(|(mut member, left_behind)| {
            member.program.take_all();
            let (ending, elapsed) = member.end.unwrap_or((Ending::TimeLimit, limit));
            LoadRun {
                ending,
                elapsed,
                left_behind,
                program: member.program,
            }
        });
    let both = ended.next().zip(ended.next());
    let both = both.ok_or_else(|| Stop::last("cannot run two programs beside each other"))?;
    Ok(PairRun {
        runs: both.into(),
        processes: reaped.processes,
        peak: reaped.peak,
    })
}

/// Waits until the processes that the programs left behind have exited; kills those that take longer than [`GRACE`].
/// Returns for each program how many of them were killed.
fn end_of_others(
    clock: Clock,
    pair: &mut [Member; 2],
    reaped: &mut Reaped,
    tick: &dyn Fn(),
) -> [usize; 2] {
    let since = clock.now();
    let mut killed = [0; 2];
    let mut has_killed = false;
    while reaped.reap_ended() {
        if clock.now().since(since) >= GRACE && !has_killed {
            has_killed = true;
            for (killed, member) in killed.iter_mut().zip(pair.iter()) {
                *killed = member.program.kill();
            }
            // Processes that left their program's session cannot be assigned to either program.
            killed[0] += kill_all();
        }
        for member in pair.iter_mut() {
            member.program.take_all();
        }
        tick();
        clock::sleep(POLL);
    }
    killed
}
