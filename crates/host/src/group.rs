//! A memory cgroup for one workload, with its limits.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pagetide_quantity::{Bytes, PAGE_SIZE};

use crate::change::{Change, Left};
use crate::error::{HostError, io};
use crate::group_files::{self, number, number_of, swap_of_version_1};
use crate::hierarchy::Hierarchy;
use crate::journal::{Entry, Journal};
use crate::process::Process;

/// Limits of a memory cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum memory usage (`memory.max`).
    pub max: Bytes,
    /// Memory usage above which the cgroup is throttled and reclaimed (`memory.high`); `None` for no such limit.
    /// Version 1 does not have this limit.
    pub high: Option<Bytes>,
    /// Maximum swap usage (`memory.swap.max`); `None` for no limit.
    pub swap_max: Option<Bytes>,
    /// Swappiness of the cgroup; `None` to leave it as it is. Only version 1 has a swappiness for each cgroup.
    pub swappiness: Option<u8>,
}

impl Limits {
    /// Returns limits with this maximum memory usage and no limit on swap.
    pub const fn of(max: Bytes) -> Self {
        Self {
            max,
            high: None,
            swap_max: None,
            swappiness: None,
        }
    }
}

/// Minimum distance, with version 1, between the limit of memory and the limit of memory and swap together: twice the
/// amount that a CPU charges at once (kernel `mm/memcontrol.c`, `MEMCG_CHARGE_BATCH` of 64 pages). The kernel counts
/// hits of the memory limit only (`memory.failcnt`), so that limit must be reached first.
const BATCH: Bytes = Bytes(128 * PAGE_SIZE);

/// Memory usage and events of a cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupUse {
    /// Current memory usage.
    pub memory: Bytes,
    /// Peak memory usage; `None` if the kernel does not report it (before 5.19 with version 2).
    pub peak: Option<Bytes>,
    /// Swap space used, including that of pages that are also in memory.
    pub swap: Bytes,
    /// Number of times that the cgroup reached its memory limit.
    pub limit_hits: u64,
    /// Number of processes of the cgroup that the OOM killer killed.
    pub oom_kills: u64,
}

/// A memory cgroup of pagetide. When it is dropped, its processes are killed and it is removed.
#[derive(Debug)]
pub struct Group {
    /// Folder with the files of the memory controller.
    path: PathBuf,
    /// Folder of the second cgroup, of version 2, that provides pressure and CPU time; `None` if `path` is of version 2
    /// itself.
    twin: Option<PathBuf>,
    version: u8,
    entries: Vec<Entry>,
    journal: Journal,
}

/// Number of cgroups that this process has created, used to give each a unique name.
static COUNT: AtomicU32 = AtomicU32::new(0);

impl Group {
    /// Creates a cgroup, sets its limits and reads them back. Fails if the kernel set another value.
    pub fn make(
        journal: &Journal,
        hierarchy: &Hierarchy,
        limits: &Limits,
    ) -> Result<Self, HostError> {
        let tool = Process::current();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pagetide-{}-{}-{count}", tool.pid, tool.start);
        if let Hierarchy::Root { .. } | Hierarchy::Delegated { .. } = hierarchy {
            give_memory(journal, hierarchy, &name)?;
        }
        let mut group = Self {
            path: hierarchy.root().join(&name),
            twin: match hierarchy {
                Hierarchy::Version1 { unified, .. } => {
                    unified.as_ref().map(|root| root.join(&name))
                }
                _ => None,
            },
            version: match hierarchy {
                Hierarchy::Version1 { .. } => 1,
                _ => 2,
            },
            entries: Vec::new(),
            journal: journal.clone(),
        };
        for path in [Some(group.path.clone()), group.twin.clone()]
            .into_iter()
            .flatten()
        {
            let change = Change::Group { path: path.clone() };
            let make =
                || fs::create_dir(&path).map_err(io("making group", path.display().to_string()));
            let (entry, ()) = journal.make(change, make)?;
            group.entries.push(entry);
        }
        group.limit(limits)?;
        Ok(group)
    }

    /// Sets the limits and reads them back. Fails if the kernel set another value.
    pub fn limit(&self, limits: &Limits) -> Result<(), HostError> {
        let page = |bytes: Bytes| (bytes.0 / PAGE_SIZE * PAGE_SIZE).to_string();
        let max = || "max".to_owned();
        if self.version == 2 {
            let high = limits.high.map_or_else(max, page);
            self.set("memory.high", &high)?;
            self.set("memory.max", &page(limits.max))?;
            let swap = limits.swap_max.map_or_else(max, page);
            // A kernel without swap has no such file, and no swap to limit.
            if limits.swap_max.is_some() || self.path.join("memory.swap.max").exists() {
                self.set("memory.swap.max", &swap)?;
            }
            return Ok(());
        }
        if limits.high.is_some() {
            return Err(HostError::NoGroup {
                why: "memory groups of version 1 have no memory.high".to_owned(),
                remedy: "leave it out, or boot with systemd.unified_cgroup_hierarchy=1".to_owned(),
            });
        }
        // The limit of memory and swap together must never be below the limit of memory.
        let both = "memory.memsw.limit_in_bytes";
        if self.path.join(both).exists() {
            let path = self.path.join(both);
            fs::write(&path, "-1").map_err(io("setting", path.display().to_string()))?;
        }
        self.set("memory.limit_in_bytes", &page(limits.max))?;
        if let Some(swap) = limits.swap_max {
            let swap = swap.0.max(BATCH.0);
            self.set(both, &page(Bytes(limits.max.0 + swap)))?;
        }
        if let Some(swappiness) = limits.swappiness {
            self.set("memory.swappiness", &swappiness.to_string())?;
        }
        Ok(())
    }

    /// Writes a file of the cgroup and reads it back. Fails if the values differ. This needs no entry in the journal,
    /// because the cgroup is removed in the end.
    pub fn set(&self, file: &str, wanted: &str) -> Result<(), HostError> {
        let path = self.path.join(file);
        fs::write(&path, wanted).map_err(io("setting", path.display().to_string()))?;
        let found = fs::read_to_string(&path).map_err(io("reading", path.display().to_string()))?;
        if found.trim() == wanted {
            return Ok(());
        }
        Err(HostError::Limit {
            file: path,
            wanted: wanted.to_owned(),
            found: found.trim().to_owned(),
        })
    }

    /// Returns the version of the cgroup: 1 or 2.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Returns the folder with the files of the memory controller.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder with the files of pressure and CPU time; `None` if it has no file `memory.pressure`.
    pub fn pressure(&self) -> Option<&Path> {
        let path = self.twin.as_deref().unwrap_or(&self.path);
        path.join("memory.pressure").exists().then_some(path)
    }

    /// Opens the `cgroup.procs` files of the cgroup and its twin. A process that writes `0` to each of them enters the
    /// cgroup; a child does so between fork and exec.
    pub fn doors(&self) -> Result<Vec<File>, HostError> {
        let folders = [Some(&self.path), self.twin.as_ref()].into_iter().flatten();
        folders
            .map(|folder| {
                let path = folder.join("cgroup.procs");
                File::options()
                    .write(true)
                    .open(&path)
                    .map_err(io("opening", path.display().to_string()))
            })
            .collect()
    }

    /// Moves a process into the cgroup.
    pub fn admit(&self, pid: u32) -> Result<(), HostError> {
        for folder in [Some(&self.path), self.twin.as_ref()].into_iter().flatten() {
            let path = folder.join("cgroup.procs");
            fs::write(&path, pid.to_string())
                .map_err(io("moving a process with", path.display().to_string()))?;
        }
        Ok(())
    }

    /// Returns current usage and events; `None` if the cgroup is gone.
    pub fn usage(&self) -> Option<GroupUse> {
        let bytes = |file: &str| number(&self.path, file).map(Bytes);
        if self.version == 2 {
            return Some(GroupUse {
                memory: bytes("memory.current")?,
                peak: bytes("memory.peak"),
                swap: bytes("memory.swap.current").unwrap_or_default(),
                limit_hits: number_of(&self.path, "memory.events", "max")?,
                oom_kills: number_of(&self.path, "memory.events", "oom_kill")?,
            });
        }
        Some(GroupUse {
            memory: bytes("memory.usage_in_bytes")?,
            peak: bytes("memory.max_usage_in_bytes"),
            swap: Bytes(swap_of_version_1(&self.path)?),
            limit_hits: number(&self.path, "memory.failcnt")?,
            oom_kills: number_of(&self.path, "memory.oom_control", "oom_kill").unwrap_or_default(),
        })
    }

    /// Returns the PIDs of the processes in the cgroup and in cgroups below it.
    pub fn members(&self) -> Vec<u32> {
        let mut all = group_files::all_members(&self.path);
        if let Some(twin) = &self.twin {
            all.extend(group_files::all_members(twin));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Kills all processes of the cgroup and waits at most `patience` until they are gone. Returns the number of
    /// processes that remain.
    pub fn kill_all(&self, patience: Duration) -> usize {
        if let Some(twin) = &self.twin {
            group_files::kill(twin);
        }
        group_files::empty(&self.path, patience)
    }

    /// Kills the processes of the cgroup and removes it. Returns what could not be undone.
    pub fn remove(mut self) -> Vec<Left> {
        let entries = std::mem::take(&mut self.entries);
        self.journal.undo(&entries)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What could not be undone stays in the journal.
        self.journal.undo(&self.entries);
    }
}

/// Enables the memory controller for the children of the cgroup in which trials create theirs, if it is not enabled.
/// Processes of a delegated cgroup are first moved into a child: only the root cgroup may have both processes and
/// controlled children.
fn give_memory(journal: &Journal, hierarchy: &Hierarchy, name: &str) -> Result<(), HostError> {
    let parent = hierarchy.root();
    let control = parent.join("cgroup.subtree_control");
    let fault = || io("reading", control.display().to_string());
    let enabled = fs::read_to_string(&control).map_err(fault())?;
    if enabled.split_whitespace().any(|name| name == "memory") {
        return Ok(());
    }
    let in_the_way = hierarchy.in_the_way();
    if !in_the_way.is_empty() {
        let path = parent.join(format!("{name}-others"));
        let change = Change::Leaf { path: path.clone() };
        let (_stays, ()) = journal.make(change, || {
            let fault = || io("making group", path.display().to_string());
            fs::create_dir(&path).map_err(fault())?;
            for pid in in_the_way {
                // A process may have ended by itself.
                let _ = fs::write(path.join("cgroup.procs"), pid.to_string());
            }
            Ok(())
        })?;
    }
    let change = Change::Controller {
        group: parent.to_owned(),
    };
    let (_stays, ()) = journal.make(change, || {
        fs::write(&control, "+memory").map_err(io(
            "enabling the memory controller with",
            control.display().to_string(),
        ))
    })?;
    Ok(())
}
