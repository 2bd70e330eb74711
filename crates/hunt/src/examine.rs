//! Measures candidates, within a budget of trials or time. The trait [`Examiner`] separates the search, which runs
//! nothing, from the trials.

use std::time::{Duration, Instant};

use pagetide_campaign::RunError;
use pagetide_quantity::Nanos;

use crate::goal::Outcome;

/// A request to measure a candidate with a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Question<P> {
    /// The candidate.
    pub point: P,
    /// Seed of the trials. If a measurement has several seeds, this is the first of them.
    pub seed: u64,
}

/// Measures candidates.
pub trait Examiner<P> {
    /// Returns the number of trials of one measurement.
    fn trials_each(&self) -> u64;

    /// Measures candidates and returns an outcome for each, in the order of `asked`. Returns `None` if stopped.
    fn examine(&mut self, asked: &[Question<P>]) -> Result<Option<Vec<Outcome>>, RunError>;
}

/// How long a hunt runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// The hunt ends once this number of trials has run; repetitions of a candidate that have begun are completed
    /// first. Hunts with the same seed and number try the same candidates.
    Trials(u64),
    /// The hunt ends after this wall-clock time; repetitions of a candidate that have begun are completed first.
    Time(Duration),
}

impl std::str::FromStr for Budget {
    type Err = String;

    /// Parses a number of trials such as `2000`, or a time such as `90s`, `30m` or `2h`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "give a number of trials such as 2000, or a time such as 30m or 2h".to_owned();
        let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
            None => (text, ""),
            Some(end) => text.split_at(end),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let seconds = match unit {
            "" => return Ok(Self::Trials(number)),
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return Err(wrong()),
        };
        Ok(Self::Time(Duration::from_secs(
            number.saturating_mul(seconds),
        )))
    }
}

/// Measures candidates for a hunt, and counts trials and time against the hunt's budget.
pub struct Meter<'a, P> {
    examiner: &'a mut dyn Examiner<P>,
    budget: Budget,
    began: Instant,
    /// Number of trials so far, including those that already had a record.
    pub trials: u64,
}

impl<'a, P> Meter<'a, P> {
    /// Creates the meter. Trials and time count from now on.
    pub fn new(examiner: &'a mut dyn Examiner<P>, budget: Budget) -> Self {
        Self {
            examiner,
            budget,
            began: Instant::now(),
            trials: 0,
        }
    }

    /// True if the budget is used up.
    pub fn is_over(&self) -> bool {
        match self.budget {
            Budget::Trials(most) => self.trials >= most,
            Budget::Time(most) => self.began.elapsed() >= most,
        }
    }

    /// Returns the number of measurements until the budget is used up, at least 1 and at most `most`. If the budget is
    /// a time, returns `most`.
    pub fn room(&self, most: usize) -> usize {
        match self.budget {
            Budget::Time(_) => most,
            Budget::Trials(all) => {
                let left = all.saturating_sub(self.trials) / self.examiner.trials_each().max(1);
                usize::try_from(left).unwrap_or(most).clamp(1, most.max(1))
            }
        }
    }

    /// Returns the wall-clock time since the meter was created, which is when the hunt began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the estimated wall-clock time until the budget is used up. `None` if the budget is a number of trials
    /// and no trial has run yet.
    pub fn left(&self) -> Option<Duration> {
        let elapsed = self.elapsed();
        match self.budget {
            Budget::Time(most) => Some(most.saturating_sub(elapsed)),
            Budget::Trials(_) if self.trials == 0 => None,
            Budget::Trials(most) => {
                let todo = most.saturating_sub(self.trials);
                let each = elapsed.as_secs_f64() / self.trials as f64;
                Some(Duration::from_secs_f64(each * todo as f64))
            }
        }
    }

    /// Formats the progress of the hunt as one line. `best` is the goal's number nearest to the goal, as text.
    pub fn tally(&self, best: &str, found: usize) -> String {
        let time =
            |time: Duration| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).about();
        let left = self.left().map_or("unknown".to_owned(), time);
        let trials = self.trials;
        format!("{trials} trials, {left} left, {found} found; nearest: {best}")
    }

    /// Measures candidates, even if the budget ends during the measurement. Returns `None` if stopped.
    pub fn ask(&mut self, asked: &[Question<P>]) -> Result<Option<Vec<Outcome>>, RunError> {
        let outcomes = self.examiner.examine(asked)?;
        if outcomes.is_some() {
            self.trials += asked.len() as u64 * self.examiner.trials_each();
        }
        Ok(outcomes)
    }
}
