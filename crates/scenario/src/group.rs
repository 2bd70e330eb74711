//! A memory control group (version 2) for the processes of a program. Source: kernel
//! `Documentation/admin-guide/cgroup-v2.rst`, "Memory".

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::Stop;

/// Mount point of the control groups.
const GROUPS: &str = "/sys/fs/cgroup";
/// Name of the program's group.
const NAME: &str = "pagetide-program";

/// A control group. It is not removed, because the guest ends after the trial.
pub(crate) struct Group {
    folder: PathBuf,
}

impl Group {
    /// Creates the group and sets its limits, given as file names and values. Fails if the kernel has no memory control
    /// groups.
    pub(crate) fn new(limits: &[(&str, String)]) -> Result<Self, Stop> {
        let attempt = || {
            Stop::system(
                "cannot limit the program's memory, for which the kernel needs memory control groups (CONFIG_MEMCG)",
            )
        };
        let groups = Path::new(GROUPS);
        fs::write(groups.join("cgroup.subtree_control"), "+memory").map_err(attempt())?;
        let folder = groups.join(NAME);
        match fs::create_dir(&folder) {
            Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(attempt()(why)),
            _ => {}
        }
        for (name, value) in limits {
            fs::write(folder.join(name), value)
                .map_err(Stop::system(format!("cannot set {name} to {value}")))?;
        }
        Ok(Self { folder })
    }

    /// Returns the path of the file that adds a process to the group.
    pub(crate) fn procs_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Returns the number in one of the group's files; `None` if this kernel does not have the file.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        text.trim().parse().ok()
    }
}
