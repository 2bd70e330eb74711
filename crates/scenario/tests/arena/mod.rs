//! Runs a scenario in a single-threaded process, with a memory control group and swap if needed.
//!
//! The process is the example `run_scenario`, which `cargo test` builds but `cargo test --tests` does not.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::fs;
use std::path::Path;
use std::process::Command;

use pagetide_host::{Group, Hierarchy, Journal, Limits, StateFolder, SwapDevice, SwapOn, sweep};
use pagetide_quantity::{Bytes, Series};
use pagetide_record::wire;
use pagetide_scenario::Outcome;
use pagetide_testing::machine::{Turn, alone};
use pagetide_testing::{Need, skip};

/// Result of running a scenario.
#[derive(Debug)]
pub struct Run {
    /// Outcome that the scenario returned.
    pub outcome: Outcome,
    region: Vec<u8>,
}

impl Run {
    /// Returns the value of a metric. Panics if it is missing.
    pub fn metric(&self, name: &str) -> f64 {
        self.outcome
            .metrics
            .iter()
            .find(|metric| metric.name == name)
            .unwrap_or_else(|| panic!("no metric {name}"))
            .value
            .number()
            .unwrap_or_else(|| panic!("{name} has no number"))
    }

    /// Returns the series with this name. Panics if it is missing.
    pub fn series(&self, name: &str) -> Series {
        Series::decode(name, self.frame(name)).unwrap()
    }

    /// Returns the content of the blob with this name. Panics if it is missing.
    pub fn blob(&self, name: &str) -> &[u8] {
        self.frame(name)
    }

    fn frame(&self, name: &str) -> &[u8] {
        wire::frames(&self.region)
            .find(|frame| frame.name == name)
            .unwrap_or_else(|| panic!("no frame {name}"))
            .bytes
    }
}

/// A memory limit and swap space for tests, removed on drop. Tests with one run one after another, because the swap
/// space of a test is open to all processes: it is switched off only if no other process has pages in it.
pub struct Pressure {
    // Fields are in the order in which they are dropped: a group with pages in swap must be removed before swap is
    // switched off.
    group: Group,
    _swap: Option<SwapDevice>,
    _turn: Turn,
}

impl Pressure {
    /// Creates a limit of `mib` MiB with 256 MiB of swap. Returns `None` and reports the reason if that is not
    /// possible.
    pub fn new(mib: u64) -> Option<Self> {
        Self::limited(
            &Limits::of(Bytes::from_mib(mib)),
            Some(Bytes::from_mib(256)),
        )
    }

    /// Creates a limit of `mib` MiB in a group that never swaps, even if the machine has swap.
    pub fn without_swap(mib: u64) -> Option<Self> {
        let limits = Limits {
            swap_max: Some(Bytes(0)),
            ..Limits::of(Bytes::from_mib(mib))
        };
        Self::limited(&limits, None)
    }

    fn limited(limits: &Limits, swap: Option<Bytes>) -> Option<Self> {
        let hierarchy = Hierarchy::find()
            .inspect_err(|why| skip(Need::MemoryGroup, why))
            .ok()?;
        let turn = alone();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let state = StateFolder::at(folder.join("host"));
        // Undoes the changes that a killed run of these tests left.
        sweep(&state).unwrap();
        let journal = Journal::create(&state).unwrap();
        let on = SwapOn::Loop {
            folder: folder.to_owned(),
        };
        let swap = swap.map(|size| SwapDevice::switch_on(&journal, &on, size));
        let swap = swap
            .transpose()
            .inspect_err(|why| skip(Need::Swap, why))
            .ok()?;
        let group = Group::make(&journal, &hierarchy, limits)
            .inspect_err(|why| skip(Need::MemoryGroup, why))
            .ok()?;
        Some(Self {
            group,
            _swap: swap,
            _turn: turn,
        })
    }
}

/// Runs the example program. If it fails, the error is its error output.
pub fn run(pressure: Option<&Pressure>, arguments: &[&str]) -> Result<Run, String> {
    let folder = tempfile::tempdir().unwrap();
    let region = folder.path().join("region");
    let program = std::env::current_exe().unwrap();
    let program = program
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/run_scenario");
    let mut command = match pressure {
        Some(pressure) => {
            let mut shell = Command::new("sh");
            shell
                .arg("-c")
                .arg("echo $$ > \"$0\" && exec \"$@\"")
                .arg(pressure.group.path().join("cgroup.procs"))
                .arg(&program);
            shell
        }
        None => Command::new(&program),
    };
    let output = command
        .args(arguments)
        .arg("--region")
        .arg(&region)
        .arg("--work-dir")
        .arg(folder.path())
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(Run {
        outcome: serde_json::from_slice(&output.stdout).unwrap(),
        region: fs::read(&region).unwrap(),
    })
}
