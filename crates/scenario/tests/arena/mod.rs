//! Runs a scenario in a single-threaded process, with a memory control group and a swap file if needed.
//!
//! The process is the example `run_scenario`, which `cargo test` builds but `cargo test --tests` does not.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pagetide_quantity::Series;
use pagetide_record::wire;
use pagetide_scenario::Outcome;
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

/// A memory limit and swap space for tests, removed on drop.
pub struct Pressure {
    group: PathBuf,
    swap: Option<tempfile::NamedTempFile>,
}

impl Pressure {
    /// Creates a limit of `mib` MiB with 256 MiB of swap. Returns `None` and reports the reason if that is not
    /// possible.
    pub fn new(mib: u64) -> Option<Self> {
        let mut pressure = Self::limited(mib)?;
        let swap = swap_file()?;
        pressure.swap = Some(swap);
        Some(pressure)
    }

    /// Creates a limit of `mib` MiB in a group that never swaps, even if the machine has swap.
    pub fn without_swap(mib: u64) -> Option<Self> {
        let pressure = Self::limited(mib)?;
        fs::write(pressure.group.join("memory.swappiness"), "0").unwrap();
        let both = pressure.group.join("memory.memsw.limit_in_bytes");
        if both.exists() {
            fs::write(both, (mib << 20).to_string()).unwrap();
        }
        Some(pressure)
    }

    fn limited(mib: u64) -> Option<Self> {
        let skipped = |why: &str| {
            skip(Need::MemoryGroup, why);
            None
        };
        // SAFETY: no arguments.
        if unsafe { libc::geteuid() } != 0 {
            return skipped("needs root for a memory group");
        }
        let root = Path::new("/sys/fs/cgroup/memory");
        if !root.join("memory.limit_in_bytes").exists() {
            return skipped("no memory controller of version 1 here");
        }
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let group = root.join(format!("pagetide-test-{}-{number}", std::process::id()));
        if fs::create_dir(&group).is_err() {
            return skipped("cannot make a memory group");
        }
        fs::write(group.join("memory.limit_in_bytes"), (mib << 20).to_string()).unwrap();
        Some(Self { group, swap: None })
    }
}

fn swap_file() -> Option<tempfile::NamedTempFile> {
    let file = tempfile::Builder::new()
        .prefix("pagetide-swap")
        .tempfile()
        .ok()?;
    let path = file.path();
    // SAFETY: the descriptor is open; the call allocates space, so that the file has no holes.
    let allocated = unsafe { libc::posix_fallocate(file.as_file().as_raw_fd(), 0, 256 << 20) };
    let ready = allocated == 0
        && Command::new("mkswap")
            .arg(path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
        && Command::new("swapon")
            .arg(path)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success());
    if ready {
        return Some(file);
    }
    skip(Need::Swap, "no swap file can be used here");
    None
}

impl Drop for Pressure {
    fn drop(&mut self) {
        if let Some(swap) = &self.swap {
            let _ = Command::new("swapoff").arg(swap.path()).status();
        }
        // The last process may still be exiting.
        for _ in 0..50 {
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
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
                .arg(pressure.group.join("cgroup.procs"))
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
