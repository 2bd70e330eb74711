//! Writes the state of a run into the store, for `pagetide serve`, and forwards each event.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pagetide_quantity::Nanos;
use pagetide_record::wire::Phase;
use pagetide_store::Store;
use pagetide_store::{RunEnd, RunState, RunningTrial};

use crate::event::{Event, EventListener, Tally};
use crate::locked::locked;

/// Minimum time between a write and the next one for progress within a phase of a trial. All other events are written
/// at once.
const PAUSE: Duration = Duration::from_millis(500);
/// Number of newest messages kept in the state.
const MAX_MESSAGES: usize = 8;

/// Returns the arguments and working directory of this process. `None` if one of them is not UTF-8, because the command
/// could not be reproduced then.
fn command_line() -> Option<(Vec<String>, PathBuf)> {
    let words = std::env::args_os().skip(1);
    let words = words.map(OsString::into_string).collect::<Result<_, _>>();
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    folder.to_str()?;
    Some((words.ok()?, folder))
}

/// An [`EventListener`] that writes the state of a run into the store and forwards events to another listener.
pub struct StateWriter<'a, W> {
    inner: &'a W,
    /// Second connection to the store; the run itself uses the first.
    store: Mutex<Store>,
    state: Mutex<(RunState, Instant)>,
}

impl<'a, W: EventListener> StateWriter<'a, W> {
    /// Creates a writer for a run of the campaign called `name`. Nothing is written before the first event.
    pub fn new(store: Store, name: &str, inner: &'a W) -> Self {
        let (arguments, folder) = command_line().unwrap_or_default();
        let state = RunState {
            name: name.to_owned(),
            process: std::process::id(),
            arguments,
            folder,
            started: Nanos::wall_clock(),
            ..RunState::default()
        };
        Self {
            inner,
            store: Mutex::new(store),
            state: Mutex::new((state, Instant::now())),
        }
    }

    /// Writes how the run ended. Writes nothing if no event has been written before.
    pub fn ended(&self, end: RunEnd) {
        let mut state = locked(&self.state);
        if state.0.updated.0 > 0 {
            state.0.end = end;
            state.0.trials.clear();
            self.write(&mut state);
        }
    }

    /// Writes the state into the store. Errors are ignored, because only `pagetide serve` depends on the state.
    fn write(&self, state: &mut (RunState, Instant)) {
        state.1 = Instant::now();
        state.0.updated = Nanos::wall_clock();
        let _ = locked(&self.store).note_run(&state.0);
    }

    fn take(&self, event: &Event<'_>) {
        let mut all = locked(&self.state);
        let state = &mut all.0;
        let tally = |state: &mut RunState, tally: &Tally| {
            state.total = tally.total;
            state.done = tally.done();
            state.invalid = tally.invalid;
            state.left = tally.left;
        };
        match event {
            Event::Planned(now) => tally(state, now),
            Event::Started { number, trial, .. } => {
                let trial = &trial.trial;
                state.trials.push(RunningTrial {
                    number: *number,
                    scenario: trial.scenario.clone(),
                    variant: trial.variant.name.clone(),
                    seed: trial.seed,
                    ..RunningTrial::default()
                });
            }
            Event::Step { number, step } => {
                let Some(trial) = state.trials.iter_mut().find(|t| t.number == *number) else {
                    return;
                };
                let phase = word(step.phase);
                let moved = trial.phase != phase;
                phase.clone_into(&mut trial.phase);
                (trial.done, trial.total, trial.clock) = (step.done, step.total, step.clock);
                if !moved && all.1.elapsed() < PAUSE {
                    return;
                }
            }
            Event::Stored {
                number,
                trial,
                invalid,
                tally: now,
                ..
            } => {
                state.trials.retain(|t| t.number != *number);
                if let Some(why) = invalid {
                    let trial = &trial.trial;
                    let (scenario, variant) = (&trial.scenario, &trial.variant.name);
                    say(
                        state,
                        format!(
                            "invalid: {scenario} under {variant}, seed {}: {why}",
                            trial.seed
                        ),
                    );
                }
                tally(state, now);
            }
            Event::Told(text) => say(state, (*text).to_owned()),
            Event::Futile(futile) => say(state, futile.sentence()),
            Event::Settled { .. } => say(state, event.sentence().unwrap_or_default()),
            Event::Deepened { cells, to, .. } => say(
                state,
                format!("{cells} comparisons are not explained yet: observing up to {to} seeds"),
            ),
            Event::Looked {
                blocks,
                decided,
                primaries,
                ..
            } => say(
                state,
                format!(
                    "after {blocks} seeds {decided} of {primaries} primary metrics are decided"
                ),
            ),
        }
        self.write(&mut all);
    }
}

impl<W: EventListener> EventListener for StateWriter<'_, W> {
    fn event(&self, event: &Event<'_>) {
        self.take(event);
        self.inner.event(event);
    }

    fn is_stopped(&self) -> bool {
        self.inner.is_stopped()
    }
}

fn say(state: &mut RunState, line: String) {
    state.said.push(line);
    let more = state.said.len().saturating_sub(MAX_MESSAGES);
    state.said.drain(..more);
}

const fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Boot => "boots",
        Phase::Ready | Phase::Preparing => "prepares",
        Phase::Running => "runs",
        Phase::Ended => "is read out",
        Phase::Done | Phase::Listed => "is stored",
    }
}
