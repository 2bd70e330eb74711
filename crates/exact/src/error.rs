//! What can go wrong around a trial.

use std::io;
use std::path::PathBuf;

use pagetide_quantity::Bytes;

/// Why the exact arena could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// There is no emulator.
    #[error(
        "running a guest needs {program}, which is not installed: apt-get install qemu-system-x86"
    )]
    NoEmulator {
        /// The program that was looked for.
        program: String,
    },
    /// The emulator does not answer when it is asked for its version.
    #[error(
        "{program} --version {why}: try it by hand (does `ulimit -a` leave it too little?), or name another emulator with PAGETIDE_QEMU"
    )]
    EmulatorSilent {
        /// The program.
        program: String,
        /// What became of it.
        why: String,
    },
    /// The emulator is too old.
    #[error(
        "{program} is {version}, which is too old: install QEMU 7.2 or later, or name one with PAGETIDE_QEMU"
    )]
    EmulatorTooOld {
        /// The program.
        program: String,
        /// Its version.
        version: String,
    },
    /// The emulator is none, or a build that does not say its version.
    #[error(
        "{program} says `{said}`, which is not a version this arena knows: install QEMU 7.2 or later, or name one with PAGETIDE_QEMU"
    )]
    EmulatorVersion {
        /// The program.
        program: String,
        /// What it said.
        said: String,
    },
    /// The emulator goes by the machine's clock, which would get into the guest.
    #[error(
        "{program} does not take the clock it was given (a wrapper that clears LD_PRELOAD, or a static build?), and with the machine's own clock trials would not be exact: use the distribution's QEMU"
    )]
    OwnClock {
        /// The program.
        program: String,
    },
    /// What the emulator saved has no count of instructions in it, or one of a format that is not known here.
    #[error(
        "{emulator} saved a guest without a clock that counts instructions, and its trials would not be exact: use a QEMU of the distribution, 7.2 to 10"
    )]
    NoClock {
        /// The emulator's version.
        emulator: String,
    },
    /// A file or system call refused.
    #[error("{what} {on}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        on: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel did not get to the ready point.
    #[error("{kernel} did not get ready with {memory} of memory: {why}")]
    Boot {
        /// Release of the kernel.
        kernel: String,
        /// Memory of the machine.
        memory: Bytes,
        /// The guest's or emulator's last words, and the remedy.
        why: String,
    },
    /// The machine is too small for a guest.
    #[error(
        "a guest of {wanted} does not fit: this machine has {free} free and {kept} of that are left alone; lower --memory or the swap size"
    )]
    HostMemory {
        /// What the guest may use.
        wanted: Bytes,
        /// What is available.
        free: Bytes,
        /// What is left alone.
        kept: Bytes,
    },
    /// A root that lies in memory is more than the memory.
    #[error(
        "the program's files take {files}, and with --fs tmpfs they lie in the guest's memory, of which {memory} was asked for: raise \
         --memory, leave out what it does not read, or take another --fs"
    )]
    RootInMemory {
        /// What the files take.
        files: Bytes,
        /// What was asked for.
        memory: Bytes,
    },
    /// The memory asked for is below what a guest can boot with.
    #[error("--memory {asked} is less than a guest can work in: use at least {least}")]
    TooLittleMemory {
        /// What was asked for.
        asked: Bytes,
        /// The least that works.
        least: Bytes,
    },
    /// An unknown setting.
    #[error(
        "setting `{name}` is of no known form{suggestion}: use vm.NAME, lru_gen/NAME, thp/NAME, zswap/NAME or a path below /sys or /proc/sys"
    )]
    UnknownSetting {
        /// What was asked for.
        name: String,
        /// ", did you mean …?" or nothing.
        suggestion: String,
    },
    /// A guest was not restored from a snapshot whose files are as they were written.
    #[error(
        "the emulator did not restore the guest from {path} ({why}): run again, and look into the emulator if it stays so"
    )]
    Restore {
        /// The snapshot's folder.
        path: PathBuf,
        /// What was seen of the emulator.
        why: String,
    },
    /// The disk of the cache is full.
    #[error(
        "there is no room for a guest's memory on the disk of {path}: free some, or set PAGETIDE_CACHE to a folder on another disk"
    )]
    NoRoom {
        /// The snapshot's folder.
        path: PathBuf,
    },
    /// A snapshot is removed again and again.
    #[error(
        "the snapshot {path} is gone as soon as it is made: is something else removing files there?"
    )]
    Vanished {
        /// The snapshot's folder.
        path: PathBuf,
    },
    /// It was told to stop.
    #[error("stopped before the guest was ready: run again to go on from here")]
    Stopped,
    /// The file system for a scenario could not be made.
    #[error("making a file system for the guest: {why}; apt-get install e2fsprogs")]
    FileSystem {
        /// The program's reason.
        why: String,
    },
    /// The program that makes a file system cannot be had.
    #[error("making files on {system} needs {program} of Debian's package {package}: {why}")]
    NoMaker {
        /// The file system.
        system: &'static str,
        /// The program.
        program: &'static str,
        /// Its package.
        package: &'static str,
        /// Why it is not there.
        why: String,
    },
    /// The trace of an observed trial could not be put together.
    #[error("putting the trace of an observed trial together: {why}; please report it")]
    Trace {
        /// What is wrong with it.
        why: String,
    },
    /// The files of a program cannot be had.
    #[error(transparent)]
    Root(#[from] pagetide_root::RootError),
    /// The kernel cannot be had or lacks something.
    #[error(transparent)]
    Kernel(#[from] pagetide_kernel::KernelError),
}

/// Adds attempt and object to an I/O error.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<String>,
) -> impl FnOnce(io::Error) -> ExactError {
    let on = on.into();
    move |source| ExactError::Io { what, on, source }
}
