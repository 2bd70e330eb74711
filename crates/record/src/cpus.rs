//! The CPUs of an emulated machine.

use std::fmt;
use std::str::FromStr;

use pagetide_quantity::Nanos;

use crate::text::{exact_time, serde_as_text};

/// The CPUs of an emulated machine, which take turns: `4`, or `4:10us` for turns of 10 us.
///
/// In a turn, one CPU executes one instruction per nanosecond of the turn's length, and the other CPUs wait. So the
/// clock of the machine is the sum over its CPUs: on a machine with N CPUs, each executes an instruction per N
/// nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CpusSpec {
    /// Number of CPUs, from 1 to [`Self::MAX`].
    pub count: u32,
    /// Length of a turn. Zero on a machine with one CPU, which has no turns.
    pub turn: Nanos,
}

/// Description of the accepted texts, for error messages.
pub const FORMS: &str = "a number of CPUs from 1 to 8, such as 4, or 4:10us for turns of 10 us";

impl CpusSpec {
    /// One CPU, the default.
    pub const ONE: Self = Self {
        count: 1,
        turn: Nanos(0),
    };
    /// Maximum number of CPUs.
    pub const MAX: u32 = 8;
    /// Length of a turn if the text states none.
    pub const TURN: Nanos = Nanos(5_000);
    /// Minimum length of a turn. The emulator takes longer to change CPUs than to execute a shorter turn.
    const SHORTEST: Nanos = Nanos(500);
    /// Maximum length of a turn: a quarter of the shortest timer tick of a kernel.
    const LONGEST: Nanos = Nanos(250_000);
    /// Unit of the timer that ends turns, in nanoseconds. The length of a turn is a multiple of it.
    const STEP: u64 = 10;

    /// Returns a machine of `count` CPUs with turns of the default length.
    pub const fn of(count: u32) -> Self {
        if count <= 1 {
            return Self::ONE;
        }
        Self {
            count,
            turn: Self::TURN,
        }
    }

    /// Returns true for the default of one CPU.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub fn is_default(&self) -> bool {
        *self == Self::ONE
    }

    /// Returns true if the machine has more than one CPU.
    pub const fn are_several(self) -> bool {
        self.count > 1
    }

    /// Returns the part of a cell's label that states the CPUs, and their turns if not the default; empty for one CPU.
    pub fn in_label(self) -> String {
        match (self.count, self.turn) {
            (..=1, _) => String::new(),
            (count, Self::TURN) => format!(" · {count} CPUs"),
            (count, turn) => format!(" · {count} CPUs, turns of {}", exact_time(turn)),
        }
    }
}

impl Default for CpusSpec {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for CpusSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.are_several() {
            write!(f, "{}:{}", self.count, exact_time(self.turn))
        } else {
            write!(f, "{}", self.count)
        }
    }
}

/// Name of the setting that states where the worker processes of a scenario run. It is not a file of the kernel: each
/// worker sets its CPU by sched_setaffinity(2) when it starts.
pub const WORKERS: &str = "cpu/workers";

/// CPUs on which the worker processes of a scenario run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workers {
    /// The kernel chooses the CPU of each worker and moves workers between CPUs.
    #[default]
    Free,
    /// Each worker stays on one CPU: the first on CPU 0, the next on CPU 1, and so on, with CPU 0 again after the last.
    Spread,
}

impl FromStr for Workers {
    type Err = WorkersError;

    fn from_str(text: &str) -> Result<Self, WorkersError> {
        match text {
            "free" => Ok(Self::Free),
            "spread" => Ok(Self::Spread),
            _ => Err(WorkersError(text.to_owned())),
        }
    }
}

/// Error: this text does not state on which CPUs workers run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{WORKERS}={0} does not state where workers run: give free, or spread for each on one CPU")]
pub struct WorkersError(String);

/// Why a text does not describe the CPUs of a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpusError {
    /// The number of CPUs is not in the allowed range, or not a number.
    #[error("a machine cannot have `{0}` CPUs: give {FORMS}")]
    Count(String),
    /// The length of a turn is not allowed.
    #[error(
        "CPUs cannot take turns of `{0}`: give a time from 500ns to 250us in steps of 10ns, as in 4:10us"
    )]
    Turn(String),
    /// The length of a turn was given for a single CPU.
    #[error("one CPU takes no turns: leave out `:{0}`, or give 2 to 8 CPUs")]
    OneTurn(String),
}

impl FromStr for CpusSpec {
    type Err = CpusError;

    fn from_str(text: &str) -> Result<Self, CpusError> {
        let (number, turn) = match text.split_once(':') {
            Some((number, turn)) => (number, Some(turn)),
            None => (text, None),
        };
        let count = number.parse().ok().filter(|n| (1..=Self::MAX).contains(n));
        let Some(count) = count else {
            return Err(CpusError::Count(text.to_owned()));
        };
        let spec = Self::of(count);
        let Some(turn) = turn else { return Ok(spec) };
        if count == 1 {
            return Err(CpusError::OneTurn(turn.to_owned()));
        }
        let allowed = |turn: &Nanos| {
            (Self::SHORTEST..=Self::LONGEST).contains(turn) && turn.0.is_multiple_of(Self::STEP)
        };
        let length = turn.parse::<Nanos>().ok().filter(allowed);
        length
            .map(|turn| Self { turn, ..spec })
            .ok_or_else(|| CpusError::Turn(turn.to_owned()))
    }
}

serde_as_text!(CpusSpec);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_survive_their_text_form_which_states_the_turn() {
        for (text, shown) in [
            ("1", "1"),
            ("2", "2:5us"),
            ("8", "8:5us"),
            ("4:10us", "4:10us"),
            ("4:2500ns", "4:2500ns"),
        ] {
            let spec: CpusSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), shown);
            assert_eq!(shown.parse::<CpusSpec>().unwrap(), spec);
        }
        assert!(CpusSpec::default().is_default());
        assert_eq!("4".parse::<CpusSpec>().unwrap().in_label(), " · 4 CPUs");
        let slow: CpusSpec = "4:10us".parse().unwrap();
        assert_eq!(slow.in_label(), " · 4 CPUs, turns of 10us");
    }

    #[test]
    fn workers_are_free_or_spread() {
        assert_eq!("free".parse(), Ok(Workers::default()));
        assert_eq!("spread".parse(), Ok(Workers::Spread));
        let why = "0".parse::<Workers>().unwrap_err().to_string();
        assert!(
            why.contains("cpu/workers=0") && why.contains("spread"),
            "{why}"
        );
    }

    #[test]
    fn a_wrong_number_or_turn_is_refused_with_the_right_form() {
        for text in ["0", "9", "-1", "four", "", "4.5", ":5us", "4294967296"] {
            let why = text.parse::<CpusSpec>().unwrap_err().to_string();
            assert!(
                why.contains("from 1 to 8") && why.contains("4:10us"),
                "{why}"
            );
        }
        for text in ["4:", "4:1s", "4:100ns", "4:1003ns", "4:fast", "4:0us"] {
            let why = text.parse::<CpusSpec>().unwrap_err().to_string();
            assert!(why.contains("500ns to 250us"), "{text}: {why}");
        }
        let why = "1:5us".parse::<CpusSpec>().unwrap_err().to_string();
        assert!(why.contains("one CPU takes no turns"), "{why}");
    }
}
