//! For tests alone: a test that cannot run on this machine says so, and is counted.
//!
//! A test that needs something calls [`skip`] where it is missing, and returns. The skip is printed, and appended to the
//! file that `PAGETIDE_SKIPS` names, which `make test` sums up in its last line. Under `PAGETIDE_TESTS=all` a skip is a
//! failure if the machine of CI must have what is missing ([`Need::is_required`]). This crate imports nothing of
//! pagetide.

pub mod fuzz;
pub mod git;
pub mod output;

use std::fmt::{self, Display};
use std::fs::File;
use std::io::Write;

/// What a test may need of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// QEMU.
    Emulator,
    /// Kernels from Debian's archive, in the cache or fetched.
    Kernels,
    /// Chromium with Node.js, which drives it.
    Browser,
    /// dpkg-deb, which makes packages.
    PackageTools,
    /// Programs of others that judge our formats, fetched with their own package managers.
    Judges,
    /// Root, or a mount namespace of one's own.
    Root,
    /// A memory control group.
    MemoryGroup,
    /// A swap file or a zram device.
    Swap,
    /// Transparent huge pages.
    HugePages,
    /// The running kernel's tracepoints.
    Tracing,
    /// perf.
    Perf,
    /// Building kernels, which takes minutes and is asked for with `PAGETIDE_TEST_BUILDS=FOLDER`.
    Builds,
    /// Fetching from Debian's archive anew, which is asked for with `PAGETIDE_TEST_NETWORK=1`.
    Network,
}

impl Need {
    /// Whether the machine of CI must have it: emulator, kernels, browser and package tools. The others depend on
    /// privileges, the running kernel or other people's servers.
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
            Self::Root => "root",
            Self::MemoryGroup => "memory group",
            Self::Swap => "swap",
            Self::HugePages => "huge pages",
            Self::Tracing => "tracing",
            Self::Perf => "perf",
            Self::Builds => "builds",
            Self::Network => "network",
        })
    }
}

/// Says that the running test is skipped, and counts it. The caller returns.
///
/// # Panics
/// Under `PAGETIDE_TESTS=all`, if the machine must have what is missing.
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
        // Cargo ends the names of test programs with a digest.
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
