//! A command that runs trials: it builds kernels, opens arenas, shows progress and reacts to Ctrl-C.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::Result;
use pagetide_arena::Arena;
use pagetide_campaign::{Campaign, Elsewhere, Options, Site, StateWriter, forecast, maker};
use pagetide_lab::{Builds, Interrupt, Lab, Slurm};
use pagetide_quantity::Nanos;
use pagetide_record::ArenaKind;
use pagetide_store::{RunEnd, shell};

use crate::campaign_args::CampaignArgs;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::program_args::ProgramArgs;
use crate::progress::Progress;

/// Assumed wall-clock time of a trial, for the forecast before a build if the arena can prepare no trial, because no
/// kernel is in the cache. It is the mean over the trials of a patch on two slow cores.
const GUESSED_TRIAL: Nanos = Nanos::from_secs(6);

/// State of a command that runs trials, from its start to the last trial.
pub struct Session<'a> {
    places: &'a StoreArgs,
    /// Builds kernels and opens arenas.
    pub lab: Lab,
    /// Progress shown while trials run.
    pub progress: Progress,
    /// Kind of arena that replaces the campaign's; `None` if the user named none.
    on: Option<ArenaKind>,
    /// Cluster on which trials run; `None` if they run in this process.
    cluster: Option<Slurm>,
    /// True if this process submits a job to the cluster and exits without waiting for it.
    detach: bool,
}

impl<'a> Session<'a> {
    /// Creates the session and starts to listen for Ctrl-C.
    pub fn begin(places: &'a StoreArgs, arena: &ArenaArgs) -> Result<Self> {
        let interrupt = Interrupt::listen()?;
        let progress = Progress::new(interrupt.clone());
        let told = progress.clone();
        let cache = places.cache_folder()?;
        let cluster = arena.cluster(&cache);
        let options = arena.options(cache, interrupt.flag());
        Ok(Self {
            places,
            on: arena.arena(),
            cluster,
            detach: arena.detach,
            lab: Lab::new(options, Arc::new(move |text: &str| told.say(text))),
            progress,
        })
    }

    /// Returns the campaign that the command line defines, for scenarios or for the user's own program.
    pub fn campaign(
        &self,
        what: &[String],
        args: &CampaignArgs,
        program: &ProgramArgs,
    ) -> Result<Campaign> {
        let mut request = args.request()?;
        request.adjustment.arena = self.on;
        if program.command.is_empty() {
            request.adjustment.limit = program.limit.into_iter().collect();
            return Ok(self.lab.campaign(&request, what)?);
        }
        let (spec, files) = (program.spec()?, program.files());
        let campaign = self.lab.campaign_of_program(request, what, &spec, &files);
        Ok(campaign?)
    }

    /// Returns the campaign for a search of kind `kind`. Without `--name`, the name of the campaign begins with the
    /// kind.
    pub fn campaign_of_search(
        &self,
        kind: &str,
        what: &[String],
        args: &CampaignArgs,
        program: &ProgramArgs,
    ) -> Result<Campaign> {
        let mut campaign = self.campaign(what, args, program)?;
        if args.name().is_none() {
            campaign.name = format!("{kind}-{}", campaign.name);
        }
        Ok(campaign)
    }

    /// Returns a sentence with the estimated duration of a campaign's builds and trials. Called before kernels are
    /// built. `None` if there is nothing to build.
    pub fn cost_of_builds(&self, campaign: &Campaign, fresh: bool) -> Result<Option<String>> {
        let (kernels, planned) = self.lab.builds(campaign)?;
        let to_build = kernels.iter().filter(|kernel| !kernel.is_built).count();
        if to_build == 0 {
            return Ok(None);
        }
        let build = Nanos(kernels.iter().map(|kernel| kernel.build.0).sum());
        // Errors are ignored here, because this forecast is optional. They are reported when trials are prepared.
        let whole = planned.and_then(|planned| {
            let arena = self.arena(planned.arena).ok()?;
            let (store, jobs) = (self.places.store().ok()?, self.lab.jobs());
            forecast(
                &planned,
                arena.as_ref(),
                &store,
                jobs,
                fresh,
                &kernels,
                &mut |_| {},
            )
            .ok()
        });
        let trials = if let Some(whole) = whole {
            let left = Nanos(whole.left.0.saturating_sub(build.0)).about();
            format!("{} trials, about {left}", whole.trials - whole.found)
        } else {
            let count = campaign.trial_count();
            let jobs = self.lab.jobs().unwrap_or_else(|| {
                std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
            });
            let left = Nanos(GUESSED_TRIAL.0.saturating_mul(count) / jobs.max(1) as u64);
            format!("{count} trials, about {}, a guess", left.about())
        };
        let word = if to_build == 1 { "kernel" } else { "kernels" };
        let build = build.about();
        Ok(Some(format!(
            "{to_build} {word} to build, about {build} without downloads; then {trials}"
        )))
    }

    /// Builds those kernels of a campaign that must be built from source.
    pub fn build(&mut self, campaign: &mut Campaign) -> Result<Builds> {
        Ok(self.lab.build(campaign)?)
    }

    /// Opens an arena of this kind.
    pub fn arena(&self, kind: ArenaKind) -> Result<Box<dyn Arena>> {
        Ok(self.lab.arena(kind)?)
    }

    /// Returns options for running trials. If `fresh` is true, trials that already have a record run again.
    pub fn options(&self, fresh: bool) -> Options<'_> {
        Options {
            jobs: self.lab.jobs(),
            fresh,
            keep_going: false,
            shard: None,
            elsewhere: self.cluster.as_ref().map(|cluster| Elsewhere {
                cluster,
                detach: self.detach,
            }),
            command: shell(&typed()),
            maker: &maker,
        }
    }

    /// Runs a search in the arena of a campaign. The records of its trials go to the store.
    pub fn search<T, E>(
        &self,
        campaign: &Campaign,
        search: impl FnOnce(Site<'_>) -> Result<T, E>,
        is_stopped: impl FnOnce(&T) -> bool,
    ) -> Result<T>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let arena = self.arena(campaign.arena)?;
        let (mut store, options) = (self.places.store()?, self.options(false));
        let search = |watch: &StateWriter<'_, _>| {
            search(Site {
                arena: arena.as_ref(),
                store: &mut store,
                options: &options,
                watch,
            })
        };
        self.run(&campaign.name, search, is_stopped)
    }

    /// Runs the trials of a campaign with a progress bar, and saves its state for `pagetide serve`.
    pub fn run<T, E>(
        &self,
        campaign: &str,
        run: impl FnOnce(&StateWriter<'_, Progress>) -> Result<T, E>,
        is_stopped: impl FnOnce(&T) -> bool,
    ) -> Result<T>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let state = StateWriter::new(self.places.store()?, campaign, &self.progress);
        let outcome = run(&state);
        self.progress.finish();
        state.ended(match &outcome {
            Ok(outcome) if is_stopped(outcome) => RunEnd::Stopped,
            Ok(_) => RunEnd::Whole,
            Err(error) => RunEnd::Unable(error.to_string()),
        });
        Ok(outcome?)
    }
}

/// Returns the command line of this process as the user typed it, with `pagetide` as its first word.
pub fn typed() -> Vec<OsString> {
    let words = std::env::args_os().skip(1);
    std::iter::once("pagetide".into()).chain(words).collect()
}
