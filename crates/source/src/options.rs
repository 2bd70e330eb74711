//! The options that a recipe asks for, and from what they are completed.

use std::time::Duration;

use pagetide_kernel::Cache;
use pagetide_outside::{Place, read_text};

use crate::config::{self, FRAGMENT, Options};
use crate::debian;
use crate::error::SourceError;
use crate::recipe::{ConfigRef, Recipe};
use crate::step::human;

/// Most bytes of a file with options; Debian's has 300 KB.
pub const MOST_CONFIG_BYTES: u64 = 4 << 20;

/// What becomes of the options that are not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// They are off: our own fragment says all that is on.
    Nothing,
    /// They are as the source has them by default: a distribution's configuration names nearly all.
    Distribution,
}

impl Start {
    /// Processor time of a build from nothing where none was timed here, as on 6.12.
    pub fn typical_time(self) -> Duration {
        match self {
            Self::Nothing => Duration::from_mins(6),
            Self::Distribution => Duration::from_mins(36),
        }
    }

    /// Objects of such a build on 6.12, where no build has been counted yet.
    pub fn typical_objects(self) -> usize {
        match self {
            Self::Nothing => 890,
            Self::Distribution => 2_643,
        }
    }

    /// What the first build of a distribution's configuration costs, before it begins.
    pub fn warning(self, jobs: usize) -> String {
        let jobs = u32::try_from(jobs.max(1)).unwrap_or(1);
        format!(
            "Debian's configuration compiles about {} objects: about {} the first time, where these {jobs} processors are idle; \
             each further patch compiles what it touches",
            self.typical_objects(),
            human(self.typical_time() / jobs)
        )
    }
}

/// The options of a recipe.
pub struct Asked {
    /// All of them.
    pub all: Options,
    /// Those of the user, which must come out as asked for.
    pub user: Options,
    /// What becomes of the others.
    pub start: Start,
}

impl Asked {
    /// Reads them; a distribution's are those in the cache, and of a distribution that is not there nothing is known yet.
    pub fn of(recipe: &Recipe, cache: &Cache) -> Result<Self, SourceError> {
        let ours = || config::options(FRAGMENT);
        Ok(match &recipe.config {
            None => Self {
                all: ours(),
                user: Options::new(),
                start: Start::Nothing,
            },
            Some(ConfigRef::File(path)) => {
                let text = read_text(path, Place::Named, MOST_CONFIG_BYTES);
                let text = text.map_err(SourceError::read(path))?;
                let user = config::options(&text);
                Self {
                    all: config::merged(&ours(), &user),
                    user,
                    start: Start::Nothing,
                }
            }
            Some(ConfigRef::Debian) => {
                let (suite, series) = recipe.source.debian_config();
                let text = debian::config_here(cache, suite, series).unwrap_or_default();
                Self {
                    all: config::of_distribution(&text),
                    user: Options::new(),
                    start: Start::Distribution,
                }
            }
        })
    }
}
