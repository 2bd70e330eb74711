//! A command that runs trials: where they run, how it is stopped, and what it says meanwhile.

use anyhow::Result;
use pagetide_arena::Arena;
use pagetide_campaign::{Campaign, Options, ProgramFiles, StateWriter, maker};
use pagetide_record::ArenaKind;
use pagetide_store::{RunEnd, shell};

use crate::building::{self, Outcome};
use crate::campaign_args::CampaignArgs;
use crate::interrupt::Interrupt;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::program_args::{ProgramArgs, install};
use crate::progress::Progress;
use crate::vocabulary::vocabulary;

/// From the first word to the last trial.
pub struct Session<'a> {
    places: &'a StoreArgs,
    arena: ArenaArgs,
    interrupt: Interrupt,
    /// What is shown while trials run.
    pub progress: Progress,
}

impl<'a> Session<'a> {
    /// Listens for Ctrl-C from now on.
    pub fn begin(places: &'a StoreArgs, arena: &ArenaArgs) -> Result<Self> {
        let interrupt = Interrupt::listen()?;
        Ok(Self {
            places,
            arena: arena.clone(),
            progress: Progress::new(interrupt.clone()),
            interrupt,
        })
    }

    /// The campaign that the words stand for, which may be those of a program of the user's own, whose files are put in place.
    pub fn campaign(
        &self,
        what: &[String],
        args: &CampaignArgs,
        program: &ProgramArgs,
    ) -> Result<Campaign> {
        let say = |text: &str| self.progress.say(text);
        let place = |files: &ProgramFiles| install(files, self.places, &self.interrupt, &say);
        let (request, vocabulary) = (args.request()?, vocabulary());
        if program.command.is_empty() {
            let mut campaign = request.campaign(what, &vocabulary)?;
            for scenario in &mut campaign.scenarios {
                if let Some(program) = &scenario.program {
                    let place = place(&program.files)?;
                    scenario.settle(&place)?;
                }
            }
            return Ok(campaign);
        }
        let spec = program.spec()?;
        let place = place(&program.files())?;
        Ok(request.of_program(what, &spec, &place, &vocabulary)?)
    }

    /// Builds the kernels of a campaign that are built from source.
    pub fn build(&mut self, campaign: &mut Campaign) -> Result<Outcome> {
        let say = |text: &str| self.progress.say(text);
        building::build(
            campaign,
            self.places,
            &mut self.arena,
            &self.interrupt,
            &say,
        )
    }

    /// Opens the arena of this kind.
    pub fn arena(&self, kind: ArenaKind) -> Result<Box<dyn Arena>> {
        let progress = self.progress.clone();
        let say = move |text: &str| progress.say(text);
        self.places.arena(kind, &self.arena, &self.interrupt, say)
    }

    /// How trials run; `fresh` runs those again that have a record.
    pub fn options(&self, fresh: bool) -> Options<'static> {
        Options {
            jobs: self.arena.jobs.map(usize::from),
            fresh,
            command: shell(&typed()),
            maker: &maker,
        }
    }

    /// Runs the trials of a campaign with a bar, and keeps its state where `pagetide serve` finds it.
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

/// The command line as it was typed.
pub fn typed() -> Vec<String> {
    let words = std::env::args().skip(1);
    ["pagetide".to_owned()].into_iter().chain(words).collect()
}
