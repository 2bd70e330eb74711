//! What building would come to, found out without building: what is in the cache already, what would be compiled, and about how
//! long that takes on this machine.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagetide_outside::{Place, read};
use serde::{Deserialize, Serialize};

use crate::error::SourceError;
use crate::recipe::Recipe;
use crate::step::Watch;
use crate::tree::{MOST_NOTE_BYTES, write};
use crate::variants::{Order, OrderError, is_judged_alone};
use crate::workshop::Workshop;

/// Time of a build that compiles what a patch touches, where none was timed here.
const TYPICAL_AGAIN: Duration = Duration::from_secs(25);

/// What a recipe's kernel would come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildForecast {
    /// Source, configuration and patches in words.
    pub what: String,
    /// Whether the configuration is our own, which those words do not name.
    pub ours: bool,
    /// Whether it is there, or what it takes to build it.
    pub state: BuildState,
}

/// Whether a kernel is there, or what it takes to build it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildState {
    /// It is in the cache under this name.
    Built(String),
    /// It must be built.
    ToBuild {
        /// About how long that takes.
        about: Duration,
        /// Whether everything is compiled, or what differs from a build that is there.
        whole: bool,
        /// Whether that time was measured here, rather than guessed.
        timed: bool,
    },
    /// Its source is not in the cache: nothing is known of what is in it, and whether the patches fit.
    ToFetch {
        /// About how long building takes once it is here.
        about: Duration,
    },
}

impl VariantForecast {
    /// Whether something must be built.
    pub fn is_to_build(&self) -> bool {
        matches!(self, Self::Kernel(foresight) if !matches!(foresight.state, BuildState::Built(_)))
    }
}

impl BuildState {
    /// About how long it takes until it is there, without what must be fetched.
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

/// What became of a variant in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariantForecast {
    /// Its kernel is no recipe.
    Other,
    /// Its kernel is, or would be, built.
    Kernel(BuildForecast),
    /// It would be left out: it cannot be built, or its kernel is the baseline's. In a sentence.
    LeftOut(String),
}

/// How long builds in a folder took.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Times {
    /// Seconds of the build from nothing.
    whole: Option<f64>,
    /// Seconds of the last build that compiled what differed.
    again: Option<f64>,
}

fn times(folder: &Path) -> Times {
    read(&folder.join("times.json"), Place::Own, MOST_NOTE_BYTES)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

/// Keeps how long a build took, for the next plan.
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

/// Whether a build folder holds a build that came to its end.
pub(crate) fn is_whole(folder: &Path) -> bool {
    folder.join("objects").is_file()
}

/// What a build in this folder would take; `there` holds folders that will have been built in by then.
/// `typical` is the processor time of a build from nothing, for where none was timed.
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

impl Workshop {
    /// Says what building the kernels of variants would come to. Nothing is built and nothing is fetched. Fails where
    /// [`Workshop::deliver`] would fail before it fetches or builds, except for want of programs.
    #[allow(
        clippy::result_large_err,
        reason = "it is made once, and ends the command"
    )]
    pub fn foretell(&self, orders: &[Order]) -> Result<Vec<VariantForecast>, OrderError> {
        self.foretell_telling(orders, &mut |_| {})
    }

    /// The same; `watch` is told where another process is waited for.
    #[allow(
        clippy::result_large_err,
        reason = "it is made once, and ends the command"
    )]
    pub(crate) fn foretell_telling(
        &self,
        orders: &[Order],
        watch: &mut Watch,
    ) -> Result<Vec<VariantForecast>, OrderError> {
        let mut there = BTreeSet::new();
        let mut baseline: Option<String> = None;
        let must = is_judged_alone(orders);
        let mut all = Vec::new();
        for (place, order) in orders.iter().enumerate() {
            if !Recipe::is_recipe(&order.kernel) {
                all.push(VariantForecast::Other);
                continue;
            }
            let foreseen = order
                .kernel
                .parse()
                .and_then(|recipe| self.foresee(&recipe, &mut there, watch));
            all.push(match foreseen {
                Ok(foresight) => {
                    let name = match &foresight.state {
                        BuildState::Built(name) => name.split(' ').next().map(str::to_owned),
                        _ => None,
                    };
                    if place == 0 {
                        baseline.clone_from(&name);
                    }
                    let is_same = place > 0 && name.is_some() && name == baseline;
                    if is_same && order.is_kernel_alone {
                        VariantForecast::LeftOut(format!(
                            "variant {} is left out: no change in code: its kernel is the baseline's to the last byte",
                            order.name
                        ))
                    } else {
                        VariantForecast::Kernel(foresight)
                    }
                }
                Err(source) if place == 0 || must => {
                    let name = order.name.clone();
                    return Err(OrderError { name, source });
                }
                Err(why) => {
                    VariantForecast::LeftOut(format!("variant {} is left out: {why}", order.name))
                }
            });
        }
        Ok(all)
    }
}
