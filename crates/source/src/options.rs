//! The configuration options that a recipe requests, and the defaults of all other options.

use std::time::Duration;

use pagetide_kernel::Cache;
use pagetide_outside::{FileOrigin, read_text};

use crate::config::{self, FRAGMENT, MAX_CONFIG_BYTES, Options};
use crate::debian;
use crate::error::SourceError;
use crate::recipe::{ConfigRef, Recipe};
use crate::step::human;

/// Defaults of the options that a recipe does not request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// All other options are off: pagetide's own options list everything that is on.
    Nothing,
    /// The other options have the source's defaults: a distribution's configuration lists nearly all options.
    Distribution,
}

impl Start {
    /// Returns the assumed processor time of a build from nothing, used until one is timed on this machine. Measured on
    /// 6.12.
    pub fn typical_time(self) -> Duration {
        match self {
            Self::Nothing => Duration::from_mins(6),
            Self::Distribution => Duration::from_mins(36),
        }
    }

    /// Returns the assumed number of objects that a build from nothing compiles, used until they are counted. Measured
    /// on 6.12.
    pub fn typical_objects(self) -> usize {
        match self {
            Self::Nothing => 890,
            Self::Distribution => 2_643,
        }
    }

    /// Returns a warning about the duration of the first build with a distribution's configuration, which runs `jobs`
    /// compilers in parallel.
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

/// The configuration options that a recipe requests.
pub struct Asked {
    /// All options that the recipe requests, including the user's.
    pub all: Options,
    /// The user's own options. They must have these values in the final configuration.
    pub user: Options,
    /// Defaults of all other options.
    pub start: Start,
}

impl Asked {
    /// Returns the options of a recipe. A distribution's options are read from the cache; if they are not in it, they
    /// are left out. Fails if the user's file of options cannot be read.
    pub fn of(recipe: &Recipe, cache: &Cache) -> Result<Self, SourceError> {
        let ours = || config::options(FRAGMENT);
        Ok(match &recipe.config {
            None => Self {
                all: ours(),
                user: Options::new(),
                start: Start::Nothing,
            },
            Some(ConfigRef::File(path)) => {
                let text = read_text(path, FileOrigin::Named, MAX_CONFIG_BYTES);
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
