//! Errors of the exact arena.

use std::io;
use std::path::PathBuf;

use pagetide_arena::ArenaError;
use pagetide_kernel::KernelError;
use pagetide_quantity::Bytes;
use pagetide_quantity::command::in_backticks;
use pagetide_record::nodes::{POLICY, PolicyError};
use pagetide_record::{MemorySpec, NodesSpec};

/// Why the exact arena could not run a trial or create a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// A profiled pass was requested in real time.
    #[error(
        "--profile counts instructions, which the arena vm does not: use it in the arena exact"
    )]
    ProfileInRealTime,
    /// No guest runs under KVM on this machine.
    #[error(
        "the arena vm needs KVM: {why}; use exact, which needs none, or --emulated to try the arena without meaning of its times"
    )]
    NoKvm {
        /// Why no guest runs under KVM.
        why: String,
    },
    /// No emulator is installed.
    #[error(
        "running a guest needs {program}, which is not installed: apt-get install qemu-system-x86"
    )]
    NoEmulator {
        /// Name of the missing program.
        program: String,
    },
    /// The emulator did not answer `--version`.
    #[error(
        "{program} --version {why}: try it by hand (does `ulimit -a` leave it too little?), or name another emulator with PAGETIDE_QEMU"
    )]
    EmulatorSilent {
        /// Path or name of the emulator's program.
        program: String,
        /// What happened when the program was run.
        why: String,
    },
    /// The emulator's version is too old.
    #[error(
        "{program} is {version}, which is too old: install QEMU 7.2 or later, or name one with PAGETIDE_QEMU"
    )]
    EmulatorTooOld {
        /// Path or name of the emulator's program.
        program: String,
        /// Version of the emulator.
        version: String,
    },
    /// The emulator's version is too old for several CPUs.
    #[error(
        "{cpus} CPUs need QEMU 8.1 or later, and {version} is installed: fetch a newer one beside it with `{}`, or name one with PAGETIDE_QEMU",
        in_backticks("emulator add")
    )]
    EmulatorForSeveral {
        /// Requested number of CPUs.
        cpus: u32,
        /// Version of the installed emulator.
        version: String,
    },
    /// The kernel and the program have no function with the requested name.
    #[error(
        "no function of the guest is called `{name}`{}: the profile of its record lists those that ran",
        .near.as_ref().map(|near| format!(" (did you mean {near}?)")).unwrap_or_default()
    )]
    NoFunction {
        /// Name of the function.
        name: String,
        /// A similar name of an existing function, if there is one.
        near: Option<String>,
    },
    /// The emulator cannot load the plugin that counts instructions.
    #[error(
        "{program} cannot load plugins, so it cannot count instructions by function ({why}): leave out --profile, or install a QEMU built with --enable-plugins, as Debian's is"
    )]
    NoPlugins {
        /// The emulator's program.
        program: String,
        /// The emulator's message.
        why: String,
    },
    /// A profiled pass was requested on a machine with several CPUs.
    #[error("--profile and --references count on one CPU only: leave them out, or use --cpus 1")]
    ProfileOfSeveral,
    /// The program named as emulator is not QEMU, or is a build that does not state its version.
    #[error(
        "{program} says `{said}`, which is not a version this arena knows: install QEMU 7.2 or later, or name one with PAGETIDE_QEMU"
    )]
    EmulatorVersion {
        /// Path or name of the program.
        program: String,
        /// The program's output for `--version`.
        said: String,
    },
    /// The emulator uses the machine's clock instead of the preloaded one. This would affect the guest.
    #[error(
        "{program} does not take the clock it was given (a wrapper that clears LD_PRELOAD, or a static build?), and with the machine's own clock trials would not be exact: use the distribution's QEMU"
    )]
    OwnClock {
        /// Path or name of the emulator's program.
        program: String,
    },
    /// The state saved by the emulator has no instruction counter, or one in an unknown format.
    #[error(
        "{emulator} saved a guest without a clock that counts instructions, and its trials would not be exact: use a QEMU of the distribution, 7.2 to 10"
    )]
    NoClock {
        /// Version of the emulator.
        emulator: String,
    },
    /// A file or system call failed.
    #[error("{what} {on}: {source}")]
    Io {
        /// The attempted operation.
        what: &'static str,
        /// What the operation was applied to, such as a path.
        on: String,
        /// Error from the operating system.
        source: io::Error,
    },
    /// The guest did not reach its ready point.
    #[error("{kernel} did not get ready with {memory} of memory: {why}")]
    Boot {
        /// Release of the guest's kernel.
        kernel: String,
        /// Memory of the guest's machine.
        memory: Bytes,
        /// Last output of the guest or of the emulator, and the remedy.
        why: String,
    },
    /// This machine has too little free memory for the guest.
    #[error(
        "a guest of {wanted} does not fit: this machine has {free} free and {kept} of that are left alone; lower --memory or the swap size"
    )]
    HostMemory {
        /// Memory that the guest would take.
        wanted: Bytes,
        /// Free memory of this machine.
        free: Bytes,
        /// Part of the free memory that must stay free.
        kept: Bytes,
    },
    /// The files of a program's root on tmpfs take more than the guest's memory.
    #[error(
        "the program's files take {files}, and with --fs tmpfs they lie in the guest's memory, of which {memory} was asked for: raise \
         --memory, leave out what it does not read, or take another --fs"
    )]
    RootInMemory {
        /// Size of the files in the root.
        files: Bytes,
        /// Memory requested for the guest.
        memory: Bytes,
    },
    /// The requested memory is too small to boot a guest.
    #[error("--memory {asked} is less than a guest can work in: use at least {least}")]
    TooLittleMemory {
        /// Memory requested for the guest.
        asked: Bytes,
        /// Minimum memory with which a guest boots.
        least: Bytes,
    },
    /// The requested memory or swap is more than the emulated machine can have.
    #[error("{option} {asked} is more than an emulated machine can have: use at most {most}")]
    TooMuch {
        /// The option with the size.
        option: &'static str,
        /// Size requested.
        asked: Bytes,
        /// Maximum size.
        most: Bytes,
    },
    /// The requested memory differs from the sum over the nodes.
    #[error(
        "--memory {memory} contradicts --nodes {nodes}: with nodes, the memory is the sum of the free memory of all nodes, {sum}; leave \
         out --memory or --nodes"
    )]
    NodesAndMemory {
        /// Memory requested for the guest.
        memory: MemorySpec,
        /// Nodes requested for the guest.
        nodes: NodesSpec,
        /// Free memory of all nodes together.
        sum: MemorySpec,
    },
    /// The scenario cannot run in a memory cgroup.
    #[error("{scenario} cannot run under --limit: {why}")]
    NoGroup {
        /// Name of the scenario.
        scenario: String,
        /// Why the scenario needs a machine of its own.
        why: &'static str,
    },
    /// The limit of the workload's memory cgroup is zero or larger than the machine's memory.
    #[error(
        "--limit {limit} never acts in {memory} of memory: give a limit above 0 and at most as large as --memory"
    )]
    Limit {
        /// The limit as given.
        limit: Bytes,
        /// Memory of the machine.
        memory: Bytes,
    },
    /// The memory policy of the workload cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The memory policy of the workload names a node that the machine does not have.
    #[error(
        "{POLICY}={policy} names a node that the machine does not have: it has {count}, numbered from 0; state more with --nodes"
    )]
    NoSuchNode {
        /// The policy as given.
        policy: String,
        /// Number of nodes of the machine.
        count: usize,
    },
    /// The name of a setting has no known form.
    #[error(
        "setting `{name}` is of no known form{suggestion}: use vm.NAME, lru_gen/NAME, thp/NAME, zswap/NAME or a path below /sys or /proc/sys"
    )]
    UnknownSetting {
        /// The setting's name as given.
        name: String,
        /// Either ", did you mean …?" or empty.
        suggestion: String,
    },
    /// No kernel accepts the value of a setting.
    #[error(
        "setting `{name}` is {value}, but the kernel accepts {least} to {greatest}: give a value in this range"
    )]
    SettingOutOfRange {
        /// The setting's name.
        name: String,
        /// The value as given.
        value: String,
        /// Minimum accepted value.
        least: i64,
        /// Maximum accepted value.
        greatest: i64,
    },
    /// The name is that of a file of a cgroup, not of a setting of the machine.
    #[error(
        "`{name}` belongs to a control group and is not a setting of the machine: give the limits of a program's memory with --limit \
         (memory.max), --high (memory.high) and --swap-max (memory.swap.max), as in {}, or as a setting of a group with a name, such \
         as group/program/high",
        in_backticks("run --limit 64M -- COMMAND")
    )]
    SettingOfGroup {
        /// The name as given.
        name: String,
    },
    /// The emulator did not restore a guest, although the snapshot's files are undamaged.
    #[error(
        "the emulator did not restore the guest from {path} ({why}): run again, and check the emulator if this repeats"
    )]
    Restore {
        /// Folder of the snapshot.
        path: PathBuf,
        /// What the emulator did instead.
        why: String,
    },
    /// The disk on which the cache lies is full.
    #[error(
        "there is no room for a guest's memory on the disk of {path}: free some, or set PAGETIDE_CACHE to a folder on another disk"
    )]
    NoRoom {
        /// Folder of the snapshot that does not fit.
        path: PathBuf,
    },
    /// A snapshot is repeatedly removed right after it was created.
    #[error(
        "the snapshot {path} disappears as soon as it is made: check whether another program removes files there"
    )]
    Vanished {
        /// Folder of the snapshot.
        path: PathBuf,
    },
    /// The user asked to stop.
    #[error("stopped before the guest was ready: run again to go on from here")]
    Stopped,
    /// The file system for a scenario could not be made.
    #[error("making a file system for the guest: {why}; apt-get install e2fsprogs")]
    FileSystem {
        /// Reason given by the program that makes the file system.
        why: String,
    },
    /// A program that makes a file system in the guest is not available.
    #[error("making files on {system} needs {program} of Debian's package {package}: {why}")]
    NoMaker {
        /// Name of the file system.
        system: &'static str,
        /// Name of the program that makes it.
        program: &'static str,
        /// Name of the Debian package with the program.
        package: &'static str,
        /// Reason why the program is not available.
        why: String,
    },
    /// The trace of an observed trial could not be assembled.
    #[error("putting the trace of an observed trial together: {why}; please report it")]
    Trace {
        /// What is wrong with the trace.
        why: String,
    },
    /// The files of a program are not available.
    #[error(transparent)]
    Root(#[from] pagetide_root::RootError),
    /// The kernel is not available or lacks a feature.
    #[error(transparent)]
    Kernel(#[from] pagetide_kernel::KernelError),
}

/// Returns a function that converts an I/O error to [`ExactError::Io`], with the attempted operation and what it was
/// applied to.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<String>,
) -> impl FnOnce(io::Error) -> ExactError {
    let on = on.into();
    move |source| ExactError::Io { what, on, source }
}

/// Returns a function that converts an error to an arena's error. A stop by the user becomes [`ArenaError::Stopped`],
/// any other error is converted by `otherwise`.
pub(crate) fn ended(otherwise: fn(ExactError) -> ArenaError) -> impl Fn(ExactError) -> ArenaError {
    move |why| match why {
        ExactError::Stopped | ExactError::Kernel(KernelError::Stopped) => ArenaError::Stopped,
        why => otherwise(why),
    }
}

/// Returns true if the error is [`ExactError::Restore`]: a guest was not restored from its snapshot.
pub(crate) fn is_restore(why: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(
        why.downcast_ref::<ExactError>(),
        Some(ExactError::Restore { .. })
    )
}
