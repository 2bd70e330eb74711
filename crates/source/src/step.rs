//! Steps of building a kernel, as reported to a progress display.

use std::fmt::{self, Display};
use std::time::Duration;

use pagetide_kernel::Step;

/// An event of a build: a step that begins, progress, a note, or the end. [`Display`] formats it as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildStep {
    /// A step of the kernel cache: fetching or unpacking.
    Kernel(Step),
    /// Waiting for another process that uses the same folder.
    Waiting {
        /// Description of what the other process is building.
        what: String,
    },
    /// The files of a git tree are being written into the cache.
    CheckingOut {
        /// Name of the revision.
        revision: String,
    },
    /// A complete sentence for the user.
    Note(String),
    /// The build of a kernel starts.
    Building {
        /// Description of the kernel.
        what: String,
    },
    /// The build of a kernel makes progress.
    Progress {
        /// Description of the kernel.
        what: String,
        /// Number of objects compiled so far.
        done: usize,
        /// Approximate total number of objects; `None` if unknown.
        of: Option<usize>,
        /// Remaining time, extrapolated from the objects compiled so far; `None` if unknown.
        left: Option<Duration>,
    },
    /// Unmodified text that the compiler printed about errors.
    Compiler(String),
    /// The build of a kernel has finished.
    Built {
        /// Description of the kernel.
        what: String,
        /// Number of objects compiled.
        objects: usize,
        /// Duration of the build.
        took: Duration,
    },
}

/// Receives each event of a build when it happens.
pub type OnStep<'a> = dyn FnMut(&BuildStep) + 'a;

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

/// Returns a duration in words, rounded for readers.
pub(crate) fn human(time: Duration) -> String {
    match time.as_secs() {
        0..=90 => format!("{} s", time.as_secs()),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
