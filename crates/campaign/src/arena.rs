//! The seam between the run loop and the places where trials run.
//!
//! The loop knows an arena only as this trait, so that order, resumption and stopping are tested with a scripted arena
//! and no emulator. An arena is asked twice: [`Arena::prepare`] turns a trial as it was written down into the full
//! subject that determines it, or refuses it, before anything runs; [`Arena::run`] executes one subject.

use std::collections::BTreeMap;
use std::time::Instant;

use pagetide_record::{
    ArenaKind, Bytes, FileError, MemorySpec, Nanos, Pass, RecordWriter, Results, Subject, SwapSpec,
    Wall, wire::Phase,
};
use serde::{Deserialize, Serialize};

/// A variant as it was asked for: the kernel is still only named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantSpec {
    /// Short name, the column head in tables.
    pub name: String,
    /// The kernel as the user names it: `debian:sid`, `deb:PACKAGE=VERSION`, a path. Empty for the arena's own.
    pub kernel: String,
    /// Boot arguments added to the arena's own.
    pub boot: Vec<String>,
    /// Settings by name: `vm.swappiness`, `lru_gen/enabled`, or a path below `/sys` or `/proc/sys`.
    pub settings: BTreeMap<String, String>,
}

/// One trial as it was asked for: what stands in a campaign file, nothing resolved yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Name of the scenario.
    pub scenario: String,
    /// Whether the scenario runs as its original did, faults included.
    pub as_written: bool,
    /// The parameters that were given, as text; the others take the scenario's defaults.
    pub params: BTreeMap<String, String>,
    /// Seed of the references, the start phase and the small ballast.
    pub seed: u64,
    /// What is compared.
    pub variant: VariantSpec,
    /// Memory the workload finds.
    pub memory: MemorySpec,
    /// What it swaps to.
    pub swap: SwapSpec,
    /// Size of the swap device; `None` for the arena's default.
    pub swap_size: Option<Bytes>,
    /// Timed or observed.
    pub pass: Pass,
    /// Sampling unit within the cell, counted from 0. In an arena with noise, trials of one variant and cell with the
    /// same unit share a boot (or a fresh arena); where there is no noise every trial is a unit of its own.
    pub unit: u32,
    /// Repetition within the unit, counted from 0.
    pub repetition: u32,
}

/// What a running trial reports: which phase it is in and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Phase of the trial.
    pub phase: Phase,
    /// Steps of the scenario done.
    pub done: u64,
    /// Steps of the scenario in all; zero where unknown.
    pub total: u64,
    /// Time on the trial's own clock (virtual in the exact arena).
    pub clock: Nanos,
}

/// To whom a running trial reports, and who tells it to stop. Called from the thread that runs the trial, as often as
/// the arena looks at it (a few times a second is enough).
pub trait Progress: Sync {
    /// Takes note of how far the trial is.
    fn step(&self, step: Step);

    /// Whether the trial shall end now: the arena then kills what runs and returns [`ArenaError::Stopped`].
    fn is_stopped(&self) -> bool;
}

/// Reports to nobody and never stops: for single trials and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Progress for Unwatched {
    fn step(&self, _: Step) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

/// What one trial produced, apart from its bulk sections, which went into the sink as they came.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What the guest (or the host arena) reports, also for an invalid trial.
    pub results: Results,
    /// Times and machine. The loop fills in campaign, unit, repetition, trials side by side and the time until stored.
    pub wall: Wall,
    /// When the scenario ended (or the trial, where it never got so far): the time until the record is stored counts
    /// from here.
    pub ended: Instant,
}

/// Why a trial has no record. A trial that ran but must not be used is no error: it is a [`Finding`] whose results say
/// why they are invalid.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// This trial cannot run as it was asked for: an unknown scenario, a kernel without what the variant needs, a
    /// parameter out of bounds. Found in [`Arena::prepare`], before any trial.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The arena could not do its work: no emulator, no memory, a full disk. Other trials would meet the same.
    #[error(transparent)]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    /// The record could not be written.
    #[error(transparent)]
    Sink(#[from] FileError),
    /// The trial was told to stop and left nothing behind.
    #[error("the trial was stopped before its end: run the campaign again to go on from here")]
    Stopped,
}

impl ArenaError {
    /// The trial cannot run as it was asked for.
    pub fn refused(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Refused(why.into())
    }

    /// The arena could not do its work.
    pub fn broken(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Broken(why.into())
    }
}

/// A bounded place where trials run. Shared by the threads that run trials side by side.
pub trait Arena: Sync {
    /// Which kind it is.
    fn kind(&self) -> ArenaKind;

    /// Whether the same subject may give another result when it runs again.
    fn has_noise(&self) -> bool {
        self.kind() != ArenaKind::Exact
    }

    /// Resolves a trial into the full subject that determines it, and refuses what cannot run, naming the remedy.
    /// Cheap when called again for the same kernel; starts no trial.
    fn prepare(&self, trial: &Trial) -> Result<Subject, ArenaError>;

    /// How many trials like this the machine bears side by side, by cores and free memory; at least 1. Asked with the
    /// largest subject of the plan.
    fn side_by_side(&self, _largest: &Subject) -> usize {
        1
    }

    /// Runs one trial. `subject` is what [`Arena::prepare`] made of `trial`. Bulk sections go into `sink` as they come;
    /// the caller completes and stores the record. A panic, an out-of-memory kill or a hang is a [`Finding`] with
    /// `results.invalid`, not an error.
    fn run(
        &self,
        trial: &Trial,
        subject: &Subject,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<Finding, ArenaError>;
}
