//! A memory cgroup for the processes of a workload. Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, section
//! "Memory".

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;

use crate::error::Stop;

/// Mount point of the cgroup file system.
const GROUPS: &str = "/sys/fs/cgroup";
/// Name of the cgroup of a user's program.
const PROGRAM: &str = "pagetide-program";
/// User ID and group ID of a user's program.
pub(crate) const USER: u32 = 1000;
/// Name of the cgroup of a limited workload.
const WORKLOAD: &str = "pagetide-limited";

/// The cgroup of a workload. It is not removed, because the guest ends after the trial.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
}

impl Group {
    /// Opens the cgroup of a user's program, and creates it first if it does not exist. Fails if the kernel has no
    /// memory cgroups.
    pub fn of_program() -> io::Result<Self> {
        Self::open(PROGRAM)
    }

    /// Opens the cgroup with this name, and creates it first if it does not exist. The name of a cgroup inside another
    /// one consists of the outer name, a slash, and its own name. Fails if the kernel has no memory cgroups.
    pub fn open(name: &str) -> io::Result<Self> {
        let folder = Path::new(GROUPS).join(name);
        if !folder.is_dir() {
            let parent = folder.parent().unwrap_or(Path::new(GROUPS));
            // Does not create the file: it exists only with version 2 of cgroups.
            let mut control = File::options()
                .write(true)
                .open(parent.join("cgroup.subtree_control"))?;
            control.write_all(b"+memory")?;
            fs::create_dir(&folder)?;
        }
        Ok(Self { folder })
    }

    /// Returns the existing cgroup with this folder, of version 1 or 2.
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Returns the cgroup of a limited workload; `None` if the workload is not limited.
    pub fn limited() -> Option<Self> {
        let folder = Path::new(GROUPS).join(WORKLOAD);
        folder.is_dir().then_some(Self { folder })
    }

    /// Opens the cgroup of a limited workload, sets its limit and moves this process into it. Fails if the kernel has
    /// no memory cgroups.
    pub fn join_limited(limit: Bytes) -> io::Result<Self> {
        let group = Self::open(WORKLOAD)?;
        fs::write(group.folder.join("memory.max"), limit.0.to_string())?;
        fs::write(group.procs_file(), "0")?;
        Ok(group)
    }

    /// Lets the user of programs create cgroups in this one and move processes between them, but not change its limits.
    /// Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, section "Delegation".
    pub fn delegate(&self) -> io::Result<()> {
        let files = ["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"];
        let paths = files.iter().map(|file| self.folder.join(file));
        for path in paths.chain([self.folder.clone()]) {
            chown(path, Some(USER), Some(USER))?;
        }
        Ok(())
    }

    /// Returns the folder with the cgroup's files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the cgroup of a user's program and sets its limits. Each limit is a file name and a value; others stay at
    /// their default. `None` if there are no limits and the kernel has no memory cgroups. Fails if a limit cannot be
    /// set.
    pub(crate) fn with_limits(limits: &[(String, String)]) -> Result<Option<Self>, Stop> {
        let group = match Self::of_program() {
            Ok(group) => group,
            Err(_) if limits.is_empty() => return Ok(None),
            Err(why) => {
                return Err(Stop::system(
                    "cannot limit the program's memory, for which the kernel needs memory control groups (CONFIG_MEMCG)",
                )(why));
            }
        };
        for (name, value) in limits {
            fs::write(group.folder.join(name), value)
                .map_err(Stop::system(format!("cannot set {name} to {value}")))?;
        }
        Ok(Some(group))
    }

    /// Returns the path of `cgroup.procs`, the file through which a process joins the cgroup.
    pub fn procs_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Returns the number in one of the cgroup's files; `None` if there is no such file, or no number in it.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        text.trim().parse().ok()
    }
}
