//! Progress of a campaign: a bar with the time left on a terminal, a plain line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagetide_campaign::{Event, Tally, Watch};
use pagetide_record::Pass;
use pagetide_report::date::about;

use crate::interrupt::Interrupt;
use crate::output::say;

/// Where there is no terminal, a line at most this often.
const QUIET: Duration = Duration::from_secs(30);

/// Shows progress on standard error and knows of Ctrl-C.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    on_terminal: bool,
    interrupt: Interrupt,
    spoken: Arc<Mutex<Instant>>,
}

impl Progress {
    /// A display that shows nothing yet.
    pub fn new(interrupt: Interrupt) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let target = if on_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self {
            bar: ProgressBar::with_draw_target(None, target),
            on_terminal,
            interrupt,
            spoken: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Says something that happened, above the bar.
    pub fn say(&self, text: &str) {
        if self.on_terminal {
            self.bar.suspend(|| say(text));
        } else {
            say(text);
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn tally(&self, tally: Tally) {
        if self.on_terminal {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} trials  {msg}");
            if let Ok(style) = style {
                self.bar.set_style(style.progress_chars("━╸─"));
            }
            self.bar.enable_steady_tick(Duration::from_millis(500));
            self.bar.set_length(tally.total as u64);
            self.bar.set_position(tally.done() as u64);
            self.bar.set_message(left(tally));
            return;
        }
        let mut spoken = self.spoken.lock().unwrap_or_else(PoisonError::into_inner);
        if spoken.elapsed() >= QUIET {
            *spoken = Instant::now();
            let done = tally.done();
            say(&format!(
                "{done} of {} trials, {}",
                tally.total,
                left(tally)
            ));
        }
    }
}

/// How long it will take, and what went wrong so far.
fn left(tally: Tally) -> String {
    let invalid = match tally.invalid {
        0 => String::new(),
        n => format!(", {n} invalid"),
    };
    format!("{} left{invalid}", about(tally.left))
}

impl Watch for Progress {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Planned(tally) => {
                let todo = tally.total - tally.done();
                if todo > 0 && !self.on_terminal {
                    let found = match tally.found {
                        0 => String::new(),
                        found => format!(" ({found} more have records)"),
                    };
                    say(&format!(
                        "{todo} trials to run{found}, about {}",
                        about(tally.left)
                    ));
                }
                self.tally(*tally);
            }
            Event::Stored {
                trial,
                invalid,
                tally,
                ..
            } => {
                let trial = &trial.trial;
                // Timed ones stand with their reason under the results; of observed ones nobody speaks there.
                if let Some(why) = invalid
                    && trial.pass == Pass::Observed
                {
                    self.say(&format!(
                        "invalid: {} under {} with seed {}, observed: {why}",
                        trial.scenario, trial.variant.name, trial.seed
                    ));
                }
                self.tally(*tally);
            }
            Event::Looked {
                blocks,
                decided,
                primaries,
                next,
            } => {
                let then = match next {
                    Some(next) => format!("going on to {next} seeds"),
                    None => "that was the last look".to_owned(),
                };
                self.say(&format!(
                    "after {blocks} seeds {decided} of {primaries} primary metrics are decided: {then}"
                ));
            }
            Event::Deepened { cells, from, to } => self.say(&format!(
                "{cells} comparisons differ in a time that {from} observed seeds do not explain: observing {} to {to} as well",
                from + 1
            )),
            Event::Started { .. } | Event::Step { .. } => {}
        }
    }

    fn is_stopped(&self) -> bool {
        self.interrupt.is_set()
    }
}

/// A single trial, as of `repeat`: nothing to count, but Ctrl-C ends it as well.
impl pagetide_arena::Progress for Progress {
    fn step(&self, _: pagetide_arena::Step) {}

    fn is_stopped(&self) -> bool {
        self.interrupt.is_set()
    }
}
