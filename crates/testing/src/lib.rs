//! Helpers for tests. A test that cannot run on this machine reports that it was skipped, and is counted.
//!
//! A test that needs a program or a feature calls [`skip`] if this is missing, and returns. The skip is printed and
//! appended to the file named by `PAGETIDE_SKIPS`, which `make test` prints at its end. With `PAGETIDE_TESTS=all` a
//! skip fails the test if the CI machine is required to have what is missing ([`Need::is_required`]). This crate
//! imports no other crate of pagetide.

pub mod bound;
pub mod documents;
pub mod fuzz;
pub mod git;
pub mod machine;
pub mod output;
pub mod program;
pub mod usage;

use std::fmt::{self, Display};
use std::fs::File;
use std::io::Write;

/// A program or feature of the machine that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The emulator QEMU.
    Emulator,
    /// Kernels from Debian's archive, in the cache or downloadable.
    Kernels,
    /// Chromium, and Node.js to control it.
    Browser,
    /// The program dpkg-deb, which builds packages.
    PackageTools,
    /// Third-party programs that validate pagetide's output formats, installed with their package managers.
    Judges,
    /// Language runtimes and programs that run in a guest, such as Java.
    Runtimes,
    /// Root privileges, or permission to create a mount namespace.
    Root,
    /// A memory cgroup that the test may use.
    MemoryGroup,
    /// Permission to use a swap file or a zram device.
    Swap,
    /// A kernel with transparent huge pages.
    HugePages,
    /// Access to the running kernel's tracepoints.
    Tracing,
    /// The program perf.
    Perf,
    /// Building kernels, which takes minutes; enabled by `PAGETIDE_TEST_BUILDS=FOLDER`.
    Builds,
    /// Slurm and munge, with root privileges to start their daemons.
    Slurm,
    /// Downloads from Debian's archive that bypass the cache; enabled by `PAGETIDE_TEST_NETWORK=1`.
    Network,
}

impl Need {
    /// Returns true if the CI machine must provide this: emulator, kernels, browser and package tools. The other needs
    /// depend on privileges, the running kernel or third-party servers.
    pub const fn is_required(self) -> bool {
        matches!(
            self,
            Self::Emulator | Self::Kernels | Self::Browser | Self::PackageTools
        )
    }
}

impl Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Emulator => "emulator",
            Self::Kernels => "kernels",
            Self::Browser => "browser",
            Self::PackageTools => "package tools",
            Self::Judges => "judges",
            Self::Runtimes => "runtimes",
            Self::Root => "root",
            Self::MemoryGroup => "memory group",
            Self::Swap => "swap",
            Self::HugePages => "huge pages",
            Self::Tracing => "tracing",
            Self::Perf => "perf",
            Self::Builds => "builds",
            Self::Slurm => "slurm",
            Self::Network => "network",
        })
    }
}

/// Reports that the running test is skipped because `need` is missing, and counts the skip. The caller must return.
///
/// # Panics
///
/// If `PAGETIDE_TESTS=all` is set and the CI machine must provide `need`.
pub fn skip(need: Need, why: impl Display) {
    let why = why.to_string();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    let is_all = std::env::var_os("PAGETIDE_TESTS").is_some_and(|tests| tests == "all");
    println!("skipped: {why}");
    assert!(
        !(is_all && need.is_required()),
        "{test} needs {need}, which PAGETIDE_TESTS=all requires: {why}"
    );
    if let Some(path) = std::env::var_os("PAGETIDE_SKIPS") {
        let program = std::env::current_exe().unwrap_or_default();
        let program = program.file_stem().unwrap_or_default().to_string_lossy();
        // Cargo appends a hash to the names of test programs.
        let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
        let line = format!(
            "{program} {test}\t{need}\t{}\n",
            why.replace(['\n', '\t'], " ")
        );
        let appended = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = appended {
            panic!("counting a skipped test in {}: {error}", path.display());
        }
    }
}
