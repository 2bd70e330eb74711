//! The laboratory. It is opened with folders and options, and returns campaigns and arenas.

use std::path::Path;
use std::sync::Arc;

use pagetide_arena::{Arena, Options};
use pagetide_campaign::{
    Campaign, KernelForecast, ProgramFiles, ProgramSpec, Request, RequestError,
};
use pagetide_kernel::{Cache, Stop};
use pagetide_record::ArenaKind;

use crate::building::{self, Builds};
use crate::error::LabError;
use crate::{arenas, room, vocabulary};

/// Function that receives a message for each step that takes long, such as fetching or booting a kernel.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// What a command needs to prepare campaigns and open arenas: its folders, its options for trials, and the receiver of
/// messages.
pub struct Lab {
    options: Options,
    say: Say,
}

impl Lab {
    /// Creates a laboratory with these options. Opens no files yet.
    pub fn new(options: Options, say: Say) -> Self {
        Self { options, say }
    }

    /// Returns the maximum number of trials in parallel; `None` for the number of processors.
    pub fn jobs(&self) -> Option<usize> {
        self.options.jobs
    }

    /// Returns the options for arenas and trials.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    pub(crate) fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Returns the path of the cache folder with kernels, snapshots and roots.
    pub(crate) fn folder(&self) -> &Path {
        &self.options.cache
    }

    /// Opens the cache of kernels. Its long steps end early if the user asks to stop.
    pub(crate) fn cache(&self) -> Result<Cache, LabError> {
        let cache = Cache::open(self.options.cache.clone())?;
        Ok(cache.stopping_by(Stop::by(Arc::clone(&self.options.stop))))
    }

    /// Returns the campaign for a request. The files of its programs are put into roots in the cache.
    pub fn campaign(&self, request: &Request, what: &[String]) -> Result<Campaign, LabError> {
        let mut campaign = request.campaign(what, &vocabulary())?;
        for scenario in &mut campaign.scenarios {
            if let Some(own) = &scenario.program {
                let place = self.install(&own.files)?;
                scenario.settle(&place).map_err(RequestError::from)?;
            }
        }
        Ok(campaign)
    }

    /// Returns the campaign for a user's own program. The files of the program are put into a root in the cache.
    pub fn campaign_of_program(
        &self,
        request: Request,
        what: &[String],
        spec: &ProgramSpec,
        files: &ProgramFiles,
    ) -> Result<Campaign, LabError> {
        let place = self.install(files)?;
        Ok(request.of_program(what, spec, &place, &vocabulary())?)
    }

    /// Builds the kernels of a campaign that are built from source, and writes their names into the variants. Variants
    /// whose kernels cannot be built or do not differ from the baseline's are left out. Fails if the baseline's kernel
    /// cannot be built.
    pub fn build(&mut self, campaign: &mut Campaign) -> Result<Builds, LabError> {
        let cache = self.cache()?;
        building::build(campaign, cache, &mut self.options, &*self.say)
    }

    /// Predicts the cost of building the kernels of a campaign. Builds nothing. A variant whose kernel is not built yet
    /// is planned with the default kernel. A variant that the build would leave out is removed from the campaign.
    pub fn forecast(&self, campaign: &mut Campaign) -> Result<Vec<KernelForecast>, LabError> {
        let (cache, kernel) = (self.cache()?, vocabulary().kernel);
        let options = &self.options;
        building::forecast(campaign, cache, options, &kernel, &*self.say, |why| {
            self.say(&why.to_string());
            Ok(())
        })
    }

    /// Predicts the cost of building the kernels of a campaign. Builds and fetches nothing, and prints no messages.
    /// Returns the forecasts and a copy of the campaign. In the copy, a kernel from the cache replaces each kernel that
    /// must be built. The copy is `None` if the cache has no kernel. Fails if a program is missing that a build or a
    /// trial needs.
    pub fn builds(
        &self,
        campaign: &Campaign,
    ) -> Result<(Vec<KernelForecast>, Option<Campaign>), LabError> {
        let (mut planned, cache) = (campaign.clone(), self.cache()?);
        let there = cache.list()?.pop().map(|kernel| kernel.digest.to_string());
        let otherwise = there.clone().unwrap_or_default();
        let quiet = |_: &str| {};
        let options = &self.options;
        let kernels = building::forecast(&mut planned, cache, options, &otherwise, &quiet, Err)?;
        Ok((kernels, there.map(|_| planned)))
    }

    /// Opens the arena of this kind. First removes roots and packages that exceed their share of the cache's size
    /// limit. Fails if this machine lacks something that the arena needs.
    pub fn arena(&self, kind: ArenaKind) -> Result<Box<dyn Arena>, LabError> {
        let say = Arc::clone(&self.say);
        let say = Box::new(move |text: &str| say(text));
        // Packages, roots and built kernels share one size limit with snapshots.
        let mut options = self.options.clone();
        let taken = room::make(self.folder(), options.cache_limit);
        building::take(&mut options, taken);
        arenas::open(kind, options, say)
    }
}
