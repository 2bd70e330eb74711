//! Steps of building a kernel, for a progress display.

use std::fmt::{self, Display};
use std::time::Duration;

use pagetide_kernel::Step;

/// A step, reported when it begins. [`Display`] writes it as a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildStep {
    /// A step of the kernels' cache: fetching or unpacking.
    Kernel(Step),
    /// Waiting for another process that builds in the same folder.
    Waiting {
        /// What is waited for.
        what: String,
    },
    /// A git tree's files are being written into the cache.
    CheckingOut {
        /// The revision.
        revision: String,
    },
    /// A full sentence for the user.
    Note(String),
    /// A build starts.
    Building {
        /// What is built.
        what: String,
    },
    /// A build makes progress.
    Progress {
        /// What is built.
        what: String,
        /// Objects compiled so far.
        done: usize,
        /// Approximate total number; `None` if unknown.
        of: Option<usize>,
        /// Remaining time, extrapolated from the objects done.
        left: Option<Duration>,
    },
    /// Unmodified output of the compiler.
    Compiler(String),
    /// A build has finished.
    Built {
        /// What was built.
        what: String,
        /// Objects compiled.
        objects: usize,
        /// How long it took.
        took: Duration,
    },
}

/// Receives each step when it begins.
pub type Watch<'a> = dyn FnMut(&BuildStep) + 'a;

impl Display for BuildStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(step) => step.fmt(f),
            Self::Waiting { what } => {
                write!(f, "waiting for another pagetide that works on {what}")
            }
            Self::CheckingOut { revision } => write!(f, "writing {revision} into the cache"),
            Self::Note(text) | Self::Compiler(text) => f.write_str(text),
            Self::Building { what } => write!(f, "building {what}"),
            Self::Progress {
                what,
                done,
                of,
                left,
            } => {
                write!(f, "building {what}: {done}")?;
                of.iter().try_for_each(|of| write!(f, " of about {of}"))?;
                f.write_str(" objects")?;
                left.iter()
                    .try_for_each(|left| write!(f, ", {} left", human(*left)))
            }
            Self::Built {
                what,
                objects,
                took,
            } => write!(f, "built {what}: {objects} objects in {}", human(*took)),
        }
    }
}

/// A duration in words, rounded for readability.
pub(crate) fn human(time: Duration) -> String {
    match time.as_secs() {
        0..=90 => format!("{} s", time.as_secs()),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
