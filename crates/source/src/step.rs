//! What is being done on the way to a built kernel, for a progress display.

use std::fmt::{self, Display};
use std::time::Duration;

use pagetide_kernel::Step;

/// One step, as it begins; [`Display`] makes a line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildStep {
    /// A step of the kernels' cache: fetching or unpacking.
    Kernel(Step),
    /// Another process builds in the same folder; it is waited for.
    Waiting {
        /// What for.
        what: String,
    },
    /// A git tree's files are being written into the cache.
    CheckingOut {
        /// The revision.
        revision: String,
    },
    /// Something a user should know, in a whole sentence.
    Note(String),
    /// A build begins.
    Building {
        /// What is built.
        what: String,
    },
    /// A build goes on.
    Progress {
        /// What is built.
        what: String,
        /// Objects compiled so far.
        done: usize,
        /// About how many there will be; `None` where nothing is known.
        of: Option<usize>,
        /// Time left, reckoned from the objects done.
        left: Option<Duration>,
    },
    /// What the compiler said, as it said it.
    Compiler(String),
    /// A build is done.
    Built {
        /// What was built.
        what: String,
        /// Objects compiled.
        objects: usize,
        /// How long it took.
        took: Duration,
    },
}

/// Told of each step as it begins.
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

/// A time in words that are read at a glance.
pub(crate) fn human(time: Duration) -> String {
    match time.as_secs() {
        0..=90 => format!("{} s", time.as_secs()),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
