//! Predicts the cost of builds without building: which kernels are in the cache, what must be compiled, and about how
//! long compiling takes on this machine.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagetide_outside::{FileOrigin, read};
use serde::{Deserialize, Serialize};

use crate::error::SourceError;
use crate::tree::{MAX_NOTE_BYTES, write};

/// Assumed duration of an incremental build after a patch, until one is timed on this machine.
const TYPICAL_AGAIN: Duration = Duration::from_secs(25);

/// Prediction for the kernel of one recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildForecast {
    /// Description of source, configuration and patches.
    pub what: String,
    /// True if the kernel uses pagetide's own configuration. `what` does not mention that.
    pub ours: bool,
    /// Whether the kernel is in the cache, and if not, what building it takes.
    pub state: BuildState,
}

/// Whether a kernel is in the cache, and if not, what building it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildState {
    /// The kernel is in the cache under this name.
    Built(String),
    /// The kernel must be built from a source in the cache.
    ToBuild {
        /// Approximate duration of the build.
        about: Duration,
        /// True if everything must be compiled, false if only the differences from an earlier build.
        whole: bool,
        /// True if `about` was measured on this machine, false if it is an assumption.
        timed: bool,
    },
    /// The source is not in the cache, so it is unknown whether the patches fit.
    ToFetch {
        /// Approximate duration of the build after the source is fetched.
        about: Duration,
    },
}

impl BuildState {
    /// Returns the approximate time until the kernel is built, without downloads. Zero if the kernel is in the cache.
    pub fn about(&self) -> Duration {
        match self {
            Self::Built(_) => Duration::ZERO,
            Self::ToBuild { about, .. } | Self::ToFetch { about } => *about,
        }
    }
}

impl Display for BuildForecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        f.write_str(if self.ours {
            ", pagetide's configuration: "
        } else {
            ": "
        })?;
        match &self.state {
            BuildState::Built(_) => f.write_str("in the cache"),
            BuildState::ToBuild {
                about,
                whole,
                timed,
            } => {
                let about = crate::step::human(*about);
                let scope = if *whole { "whole" } else { "what differs" };
                let guess = if *timed { "" } else { ", a guess" };
                write!(f, "to be built ({scope}), about {about}{guess}")
            }
            BuildState::ToFetch { about } => write!(
                f,
                "to be fetched and built, about {} once the source is here, a guess; whether the patches fit is not known before",
                crate::step::human(*about)
            ),
        }
    }
}

/// Measured durations of builds in one build folder.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Times {
    /// Seconds of the last build from nothing; `None` if not measured.
    whole: Option<f64>,
    /// Seconds of the last incremental build; `None` if not measured.
    again: Option<f64>,
}

fn times(folder: &Path) -> Times {
    read(&folder.join("times.json"), FileOrigin::Own, MAX_NOTE_BYTES)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

/// Stores the duration of a build for later predictions. `whole` is true for a build from nothing.
pub(crate) fn keep(folder: &Path, took: Duration, whole: bool) -> Result<(), SourceError> {
    let mut times = times(folder);
    let place = if whole {
        &mut times.whole
    } else {
        &mut times.again
    };
    *place = Some(took.as_secs_f64());
    let text = serde_json::to_vec(&times).unwrap_or_default();
    write(&folder.join("times.json"), &text)
}

/// Returns true if a build was completed in this build folder.
pub(crate) fn is_whole(folder: &Path) -> bool {
    folder.join("objects").is_file()
}

/// Predicts the duration of a build in `folder`, and adds `folder` to `there`. `there` lists the folders in which
/// earlier builds of the same forecast will have been completed. `typical` is the assumed processor time of a build
/// from nothing, used if none was timed.
pub(crate) fn of_folder(
    folder: &Path,
    there: &mut BTreeSet<PathBuf>,
    jobs: usize,
    typical: Duration,
) -> BuildState {
    let whole = !is_whole(folder) && !there.contains(folder);
    let times = times(folder);
    let jobs = u32::try_from(jobs.max(1)).unwrap_or(1);
    let (known, guess) = if whole {
        (times.whole, typical / jobs)
    } else {
        (times.again, TYPICAL_AGAIN)
    };
    there.insert(folder.to_owned());
    let known = known.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    BuildState::ToBuild {
        about: known.unwrap_or(guess),
        whole,
        timed: known.is_some(),
    }
}
