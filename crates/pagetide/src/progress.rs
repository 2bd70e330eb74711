//! Shows the progress of a campaign: on a terminal a bar with the time left, otherwise an occasional line.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagetide_campaign::{Event, EventListener, Tally};
use pagetide_lab::Interrupt;

use crate::output::say;

/// Minimum time between two lines of progress if the output is not a terminal.
const QUIET: Duration = Duration::from_secs(30);

/// Shows progress on standard error and reports Ctrl-C to the campaign.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    on_terminal: bool,
    interrupt: Interrupt,
    spoken: Arc<Mutex<Instant>>,
}

impl Progress {
    /// Creates the progress display, without showing anything yet.
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

    /// Prints a message above the progress bar.
    pub fn say(&self, text: &str) {
        if self.on_terminal {
            self.bar.suspend(|| say(text));
        } else {
            say(text);
        }
    }

    /// Removes the progress bar.
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
            self.bar.set_message(tally.outlook());
            return;
        }
        let mut spoken = self.spoken.lock().unwrap_or_else(PoisonError::into_inner);
        if spoken.elapsed() >= QUIET {
            *spoken = Instant::now();
            let done = tally.done();
            say(&format!(
                "{done} of {} trials, {}",
                tally.total,
                tally.outlook()
            ));
        }
    }
}

impl EventListener for Progress {
    fn event(&self, event: &Event<'_>) {
        if let Some(text) = event.sentence() {
            self.say(&text);
        }
        match event {
            Event::Planned(tally) => {
                if let Some(text) = tally.todo().filter(|_| !self.on_terminal) {
                    say(&text);
                }
                self.tally(*tally);
            }
            Event::Stored { tally, .. } => self.tally(*tally),
            _ => {}
        }
    }

    fn is_stopped(&self) -> bool {
        self.interrupt.is_set()
    }
}

/// Progress of a single trial, as in `repeat`. No trials are counted, but Ctrl-C stops the trial.
impl pagetide_arena::Progress for Progress {
    fn step(&self, _: pagetide_arena::Step) {}

    fn is_stopped(&self) -> bool {
        self.interrupt.is_set()
    }
}
