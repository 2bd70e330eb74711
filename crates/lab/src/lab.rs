//! The laboratory itself: opened with its places, asked for campaigns and arenas.

use std::path::Path;
use std::sync::Arc;

use pagetide_arena::{Arena, Options};
use pagetide_campaign::{Campaign, KernelForecast, ProgramFiles, ProgramSpec, Request};
use pagetide_kernel::{Cache, Stop};
use pagetide_record::ArenaKind;

use crate::building::{self, Builds};
use crate::error::LabError;
use crate::{arenas, program, room, vocabulary};

/// Who is told of long steps, such as fetching a kernel or booting one.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Where things lie, how trials run, and who is told of long steps.
pub struct Lab {
    options: Options,
    say: Say,
}

impl Lab {
    /// A laboratory with these places; nothing is opened yet.
    pub fn new(options: Options, say: Say) -> Self {
        Self { options, say }
    }

    /// Most trials side by side; `None` for as many as there are processors.
    pub fn jobs(&self) -> Option<usize> {
        self.options.jobs
    }

    /// How everything runs.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    pub(crate) fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// The folder of kernels, snapshots and roots.
    pub(crate) fn folder(&self) -> &Path {
        &self.options.cache
    }

    /// The kernels' cache, whose long steps end when the user wants no more.
    pub(crate) fn cache(&self) -> Result<Cache, LabError> {
        let cache = Cache::open(self.options.cache.clone())?;
        Ok(cache.stopping_by(Stop::by(Arc::clone(&self.options.stop))))
    }

    /// The campaign that the words stand for; programs in it get their files.
    pub fn campaign(&self, request: &Request, what: &[String]) -> Result<Campaign, LabError> {
        let mut campaign = request.campaign(what, &vocabulary())?;
        for scenario in &mut campaign.scenarios {
            if let Some(own) = &scenario.program {
                let place = program::install(self, &own.files)?;
                scenario.settle(&place)?;
            }
        }
        Ok(campaign)
    }

    /// The campaign of a program of the user's own, whose files are put in place.
    pub fn campaign_of_program(
        &self,
        request: Request,
        what: &[String],
        spec: &ProgramSpec,
        files: &ProgramFiles,
    ) -> Result<Campaign, LabError> {
        let place = program::install(self, files)?;
        Ok(request.of_program(what, spec, &place, &vocabulary())?)
    }

    /// Builds the kernels of a campaign that are built from source, and puts their names in their variants' places. Variants
    /// that cannot be built or have nothing to show are left out; the baseline cannot be.
    pub fn build(&mut self, campaign: &mut Campaign) -> Result<Builds, LabError> {
        let cache = self.cache()?;
        building::build(campaign, cache, &mut self.options, &*self.say)
    }

    /// Says what building the kernels of a campaign would come to, and builds none: those that are not there yet are planned on
    /// the kernel that runs where none is named.
    pub fn foretell(&self, campaign: &mut Campaign) -> Result<Vec<KernelForecast>, LabError> {
        let (cache, kernel) = (self.cache()?, vocabulary().kernel);
        building::foretell(campaign, cache, &self.options, &kernel, &*self.say)
    }

    /// Opens the arena of this kind.
    pub fn arena(&self, kind: ArenaKind) -> Result<Box<dyn Arena>, LabError> {
        let say = Arc::clone(&self.say);
        let say = Box::new(move |text: &str| say(text));
        // Packages and roots share the limit with snapshots, as kernels that were built do.
        let mut options = self.options.clone();
        let taken = room::make(self.folder(), options.cache_limit);
        building::take(&mut options, taken);
        arenas::open(kind, options, say)
    }
}
