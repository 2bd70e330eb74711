//! Errors of the exact arena.

use std::io;
use std::path::PathBuf;

use pagetide_quantity::Bytes;

/// Why the exact arena could not run a trial or make a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// No emulator is installed.
    #[error(
        "running a guest needs {program}, which is not installed: apt-get install qemu-system-x86"
    )]
    NoEmulator {
        /// The program that was searched for.
        program: String,
    },
    /// The emulator did not answer `--version`.
    #[error(
        "{program} --version {why}: try it by hand (does `ulimit -a` leave it too little?), or name another emulator with PAGETIDE_QEMU"
    )]
    EmulatorSilent {
        /// The program.
        program: String,
        /// What happened to it.
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
    /// The program is not QEMU, or is a build that does not state its version.
    #[error(
        "{program} says `{said}`, which is not a version this arena knows: install QEMU 7.2 or later, or name one with PAGETIDE_QEMU"
    )]
    EmulatorVersion {
        /// The program.
        program: String,
        /// Its output.
        said: String,
    },
    /// The emulator uses the machine's clock, which would affect the guest.
    #[error(
        "{program} does not take the clock it was given (a wrapper that clears LD_PRELOAD, or a static build?), and with the machine's own clock trials would not be exact: use the distribution's QEMU"
    )]
    OwnClock {
        /// The program.
        program: String,
    },
    /// The state saved by the emulator has no instruction counter, or one in an unknown format.
    #[error(
        "{emulator} saved a guest without a clock that counts instructions, and its trials would not be exact: use a QEMU of the distribution, 7.2 to 10"
    )]
    NoClock {
        /// The emulator's version.
        emulator: String,
    },
    /// A file or system call failed.
    #[error("{what} {on}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        on: String,
        /// The system's error.
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
    /// The machine has too little memory for a guest.
    #[error(
        "a guest of {wanted} does not fit: this machine has {free} free and {kept} of that are left alone; lower --memory or the swap size"
    )]
    HostMemory {
        /// Memory that the guest may use.
        wanted: Bytes,
        /// Memory available on the machine.
        free: Bytes,
        /// Memory that must stay free.
        kept: Bytes,
    },
    /// A program's root on tmpfs is larger than the guest's memory.
    #[error(
        "the program's files take {files}, and with --fs tmpfs they lie in the guest's memory, of which {memory} was asked for: raise \
         --memory, leave out what it does not read, or take another --fs"
    )]
    RootInMemory {
        /// Size of the files.
        files: Bytes,
        /// Memory asked for.
        memory: Bytes,
    },
    /// The memory asked for is too little to boot a guest.
    #[error("--memory {asked} is less than a guest can work in: use at least {least}")]
    TooLittleMemory {
        /// Memory asked for.
        asked: Bytes,
        /// The least memory that works.
        least: Bytes,
    },
    /// An unknown setting.
    #[error(
        "setting `{name}` is of no known form{suggestion}: use vm.NAME, lru_gen/NAME, thp/NAME, zswap/NAME or a path below /sys or /proc/sys"
    )]
    UnknownSetting {
        /// The setting asked for.
        name: String,
        /// Either ", did you mean …?" or empty.
        suggestion: String,
    },
    /// A guest was not restored, although the snapshot's files are unchanged.
    #[error(
        "the emulator did not restore the guest from {path} ({why}): run again, and check the emulator if this repeats"
    )]
    Restore {
        /// The snapshot's folder.
        path: PathBuf,
        /// What the emulator was observed to do.
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
    /// A snapshot disappears each time it is made.
    #[error(
        "the snapshot {path} disappears as soon as it is made: check whether another program removes files there"
    )]
    Vanished {
        /// The snapshot's folder.
        path: PathBuf,
    },
    /// The user asked to stop.
    #[error("stopped before the guest was ready: run again to go on from here")]
    Stopped,
    /// The file system for a scenario could not be made.
    #[error("making a file system for the guest: {why}; apt-get install e2fsprogs")]
    FileSystem {
        /// The program's reason.
        why: String,
    },
    /// The program that makes a file system is not available.
    #[error("making files on {system} needs {program} of Debian's package {package}: {why}")]
    NoMaker {
        /// The file system.
        system: &'static str,
        /// The program.
        program: &'static str,
        /// Its package.
        package: &'static str,
        /// Why it is not available.
        why: String,
    },
    /// The trace of an observed trial could not be assembled.
    #[error("putting the trace of an observed trial together: {why}; please report it")]
    Trace {
        /// What is wrong with it.
        why: String,
    },
    /// The files of a program are not available.
    #[error(transparent)]
    Root(#[from] pagetide_root::RootError),
    /// The kernel is not available or lacks something.
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
