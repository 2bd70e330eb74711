//! Prepares and runs trials.
//!
//! A trial is prepared once: the kernel is found, parameters are resolved, and whatever cannot run is refused. Then the
//! trial runs from a snapshot of its guest at the ready point.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pagetide_arena::{
    Arena, ArenaError, Guest, Options, PreparedTrial, Progress, Trial, TrialResult, host,
};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{
    ArenaKind, ArenaSpec, CpusSpec, FileSystem, FilesOn, FilesSpec, Machine, Pass, RecordWriter,
    Subject,
};
use pagetide_root::Roots;

use crate::boot::Boot;
use crate::contents::contents;
use crate::doctor;
use crate::emulator::Emulator;
use crate::emulators::Emulators;
use crate::error::{ExactError, ended, is_restore};
use crate::estimate;
use crate::features::wanted;
use crate::kernels::{Kernels, Say, kernel_id};
use crate::limit;
use crate::lock::locked;
use crate::machine::{MACHINE, MAX_MEMORY, MIN_MEMORY, MachineSpec};
use crate::making::Maker;
use crate::modules::{boot_arguments, modules};
use crate::place::EmulatorSlots;
use crate::preparation::{Preparation, agrees, fits, fits_policy};
use crate::program;
use crate::recipe::Recipe;
use crate::snapshot::{Snapshot, Snapshots};
use crate::timing::Timing;
use crate::trial;

/// Virtual time without progress after which a trial is ended.
const HANG_VIRTUAL: Nanos = Nanos::from_secs(300);

/// The exact arena on this machine.
pub struct Exact {
    options: Options,
    emulators: Emulators,
    places: EmulatorSlots,
    snapshots: Snapshots,
    guest: String,
    kernels: Kernels,
    /// Recipes of snapshots that were already computed, so that a kernel's modules are read once for all trials of a
    /// machine. The key is the name that the snapshot would have without modules, and whether the scenario needs packet
    /// sockets.
    recipes: Mutex<BTreeMap<(String, bool), Arc<Recipe>>>,
    machine: Machine,
    timing: Timing,
    say: Arc<Say>,
}

/// Returns the default size of the swap device: three times the memory, enough for scenarios that use up to that much.
fn default_swap_size(memory: Bytes) -> Bytes {
    Bytes((memory.0 * 3).next_multiple_of(1 << 20))
}

impl Exact {
    /// Fails if the trial requests a profile that this arena cannot create.
    fn can_profile(&self, trial: &Trial) -> Result<(), ExactError> {
        match trial.pass {
            Pass::Profiled if self.timing.is_real() => Err(ExactError::ProfileInRealTime),
            Pass::Profiled if trial.cpus.are_several() => Err(ExactError::ProfileOfSeveral),
            _ => Ok(()),
        }
    }

    /// Opens the exact arena. `say` receives a message for each long step, such as fetching or booting a kernel.
    pub fn open(
        options: Options,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, ExactError> {
        Self::open_in(Timing::Counted, options, say)
    }

    /// Opens the arena `vm`, which runs the same guests as the exact arena, but in real time: under KVM, or in plain
    /// emulation if the user asks for it. Fails with the reason if no guest runs under KVM on this machine.
    pub fn open_vm(
        options: Options,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, ExactError> {
        if options.emulated {
            say("plain emulation: its times are no measure of anything");
            return Self::open_in(Timing::Emulated, options, say);
        }
        doctor::kvm(&options.cache).map_err(|why| ExactError::NoKvm { why })?;
        Self::open_in(Timing::Kvm, options, say)
    }

    fn open_in(
        timing: Timing,
        options: Options,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, ExactError> {
        let emulators = Emulators::open(&options.cache)?;
        let snapshots = Snapshots::open(&options.cache, options.cache_limit)?;
        let processors = host::cpus();
        let most = options.jobs.map_or(processors, |jobs| jobs.max(processors));
        let say: Arc<Say> = Arc::new(say);
        Ok(Self {
            places: EmulatorSlots::of(&options.cache, most),
            kernels: Kernels::new(&options, Arc::clone(&say)),
            options,
            emulators,
            snapshots,
            guest: program::digest(),
            recipes: Mutex::default(),
            machine: host::machine(),
            timing,
            say,
        })
    }

    /// Returns the emulator of machines with one CPU.
    pub fn emulator(&self) -> &Emulator {
        self.emulators.first()
    }

    /// Returns the inputs that determine the snapshot from which a trial starts.
    fn recipe(&self, subject: &Subject, ready: &Preparation) -> Result<Arc<Recipe>, ExactError> {
        let with = |modules| ready.recipe(subject, &self.guest, modules);
        // The modules follow from the other inputs, and from whether the scenario needs packet sockets, so they can be
        // left out of the key.
        let key = (with(Vec::new()).key(), ready.needs.packet);
        if let Some(recipe) = locked(&self.recipes).get(&key) {
            return Ok(Arc::clone(recipe));
        }
        let (modules, _) = modules(&ready.kernel, subject, &ready.needs)?;
        let recipe = Arc::new(with(modules));
        locked(&self.recipes).insert(key, Arc::clone(&recipe));
        Ok(recipe)
    }

    fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Returns the size of the files that are transferred into the guest when it boots for a user's program; zero for
    /// other scenarios.
    fn handed_over(&self, ready: &Preparation) -> Bytes {
        let digest = ready.needs.root.as_deref();
        let root = digest.and_then(|digest| Roots::of(&self.options.cache).get(digest).ok());
        let size = root.and_then(|root| root.in_memory().ok());
        size.unwrap_or_default()
    }
}

/// Fails if a machine is smaller than any kernel needs, or memory or swap are larger than the arena simulates.
fn within_bounds(memory: Bytes, swap_size: Option<Bytes>) -> Result<(), ExactError> {
    if memory < MIN_MEMORY {
        return Err(ExactError::TooLittleMemory {
            asked: memory,
            least: MIN_MEMORY,
        });
    }
    let swap_size = swap_size.unwrap_or_default();
    for (option, asked) in [("--memory", memory), ("--swap-size", swap_size)] {
        if asked > MAX_MEMORY {
            return Err(ExactError::TooMuch {
                option,
                asked,
                most: MAX_MEMORY,
            });
        }
    }
    Ok(())
}

impl Arena for Exact {
    fn kind(&self) -> ArenaKind {
        if self.timing.is_real() {
            ArenaKind::Vm
        } else {
            ArenaKind::Exact
        }
    }

    fn prepare(&self, trial: &Trial) -> Result<PreparedTrial, ArenaError> {
        self.can_profile(trial).map_err(ArenaError::wrong)?;
        let memory = trial.memory.bytes();
        within_bounds(memory, trial.swap_size).map_err(ArenaError::wrong)?;
        agrees(trial.memory, &trial.nodes).map_err(ArenaError::wrong)?;
        fits_policy(&trial.variant.settings, &trial.nodes).map_err(ArenaError::wrong)?;
        let swap_size = trial
            .swap
            .total(trial.swap_size, default_swap_size(memory))
            .map_err(ArenaError::wrong)?;
        // In real time CPUs do not take turns, so any emulator can run several CPUs.
        let turning = if self.timing.is_real() {
            CpusSpec::ONE
        } else {
            trial.cpus
        };
        let emulator = self.emulators.of(turning).map_err(ArenaError::refused)?;
        let context = pagetide_scenario::Context {
            memory: trial.limit.unwrap_or(memory),
            swap_size,
            cpus: trial.cpus.count,
        };
        let params = pagetide_scenario::resolve(
            &trial.scenario,
            trial.as_written,
            None,
            &trial.params,
            &context,
        )
        .map_err(ArenaError::wrong)?;
        let kernel = self.kernels.of(&trial.variant)?;
        let id = kernel_id(&kernel, &trial.variant.kernel);
        let mut subject = Subject {
            params,
            swap_size,
            ..trial.subject(id, swap_size)
        };
        pagetide_arena::measured::check(&subject).map_err(ArenaError::wrong)?;
        let mut needs = pagetide_scenario::needs(&subject).map_err(ArenaError::wrong)?;
        if let Some(limit) = trial.limit {
            limit::check(&subject, &needs, limit).map_err(ArenaError::wrong)?;
        }
        if let Some(digest) = &needs.root {
            let root = Roots::of(&self.options.cache).get(digest);
            let root = root.map_err(ArenaError::wrong)?;
            fits(&root, &subject).map_err(ArenaError::wrong)?;
            needs.filesystem = Some(root.size);
        }
        let system = subject.files_on.system;
        let (mut maker, mut on_disk) = (None, Bytes(0));
        match &mut needs.filesystem {
            // A trial without files does not depend on the disk for files, so that disk is not part of its subject.
            None => subject.files_on = FilesSpec::default(),
            Some(size) if system == FileSystem::Tmpfs => {
                subject.files_on.on = FilesOn::Ssd;
                // A program's root exists before free memory is measured. Files written later count as the workload's
                // memory.
                on_disk = needs.root.as_ref().map_or(Bytes(0), |_| *size);
            }
            Some(size) => {
                *size = system.device(*size);
                on_disk = *size;
            }
        }
        let wanted = wanted(&subject, &needs);
        self.kernels.require(&kernel, wanted, subject.swap)?;
        if let Some(size) = needs.filesystem {
            let cache = || self.kernels.cache();
            let say = |text: &str| self.say(text);
            maker = Maker::of(subject.files_on.system, size, cache, &say)
                .map_err(ArenaError::refused)?;
        }
        let boot = boot_arguments(&kernel, &subject, &needs).map_err(ArenaError::refused)?;
        let config = kernel.config().map_err(ArenaError::refused)?;
        let machine = MachineSpec::new(
            subject.memory,
            subject.swap,
            subject.swap_size,
            Some(on_disk),
            &boot,
        )
        .with_cpus(subject.cpus)
        .for_kernel(config.get("CONFIG_ACPI").is_on())
        .with_nodes(&subject.nodes)
        .with_timing(self.timing)
        .for_emulator(emulator.numbers());
        subject.arena = ArenaSpec {
            kind: self.kind(),
            emulator: emulator.version.clone(),
            machine: MACHINE.to_owned(),
            cpu: self.timing.cpu(machine.cpu).to_owned(),
            cmdline: machine.cmdline.clone(),
            guest: self.guest.clone(),
            swap: String::new(),
        };
        let ready = Preparation {
            kernel,
            needs,
            machine,
            emulator,
            maker,
        };
        Ok(PreparedTrial::new(trial.clone(), subject, ready))
    }

    fn lacks_profiles(&self) -> Option<String> {
        if self.timing.is_real() {
            return None;
        }
        let emulator = self.emulators.of(CpusSpec::ONE).ok()?;
        let why = doctor::refuses_plugins(&emulator)?;
        Some(format!(
            "{} cannot load plugins ({why}), so trials run without profiles: which functions the time went to, which lines of a patch were executed and which pages were referenced stay unknown; to know, install a QEMU built with --enable-plugins, as Debian's is",
            emulator.program
        ))
    }

    fn side_by_side(&self, largest: &PreparedTrial) -> usize {
        // In real time, trials that run at the same time slow each other down.
        let usual = || {
            if self.timing.is_real() {
                1
            } else {
                host::cpus()
            }
        };
        let wanted = self.options.jobs.unwrap_or_else(usual).max(1);
        let Ok(ready) = largest.own::<Preparation>() else {
            return 1;
        };
        let one = ready.machine.memory.0 + (64 << 20);
        let free = host::available().0.saturating_sub(host::RESERVED_MEMORY.0);
        usize::try_from(free / one)
            .unwrap_or(wanted)
            .clamp(1, wanted)
    }

    fn estimate(&self, subject: &Subject) -> Option<Nanos> {
        if self.timing.is_real() {
            return None;
        }
        estimate::of(subject)
    }

    fn here(&self, there: Nanos) -> Nanos {
        estimate::here(there).unwrap_or(there)
    }

    fn guest(&self, prepared: &PreparedTrial) -> Option<Guest> {
        let ready = prepared.own::<Preparation>().ok()?;
        let key = self.recipe(prepared.subject(), ready).ok()?.key();
        let boot = if self.snapshots.has(&key) {
            Nanos(0)
        } else {
            estimate::of_boot(self.handed_over(ready), prepared.subject().cpus)?
        };
        Some(Guest { key, boot })
    }

    fn run(
        &self,
        prepared: &PreparedTrial,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<TrialResult, ArenaError> {
        let subject = prepared.subject();
        let ready = prepared.own::<Preparation>()?;
        let Preparation {
            kernel,
            needs,
            machine,
            emulator,
            ..
        } = ready;
        let free = host::available();
        if free.0 < machine.memory.0 + host::RESERVED_MEMORY.0 {
            return Err(ArenaError::broken(ExactError::HostMemory {
                wanted: machine.memory,
                free,
                kept: host::RESERVED_MEMORY,
            }));
        }
        let recipe = self.recipe(subject, ready).map_err(ArenaError::broken)?;
        let roots = Roots::of(&self.options.cache);
        let contents = || contents(&roots, subject, ready);
        let boot = Boot {
            recipe: &recipe,
            kernel,
            machine,
            emulator,
            places: &self.places,
            patience: self.options.hang_wall,
            progress,
        };
        let snapshot = || {
            self.snapshots
                .get(&boot, &contents, &mut |text| self.say(&text))
                .map_err(ended(|why| match why {
                    ExactError::FileSystem { .. } => ArenaError::broken(why),
                    _ => ArenaError::refused(why),
                }))
        };
        let run = |snapshot: &Snapshot, sink: &mut RecordWriter| {
            let run = trial::Run {
                emulator,
                places: &self.places,
                kernel,
                machine,
                recipe: &recipe,
                snapshot,
                roots: &roots,
                hang_wall: self.options.hang_wall,
                trace_limit: self.options.trace_limit,
                records_references: prepared.trial().references,
                annotate: prepared.trial().annotate.as_deref(),
            };
            run.execute(subject, needs, HANG_VIRTUAL, &self.machine, sink, progress)
        };
        match run(&snapshot()?, sink) {
            Err(ArenaError::Broken(why)) if is_restore(&*why) => {
                self.say(&format!("{why}; booting the guest again"));
                self.snapshots.discard(&recipe);
                run(&snapshot()?, sink)
            }
            other => other,
        }
    }
}
