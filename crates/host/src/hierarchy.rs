//! Finds where memory cgroups can be created: the mounted cgroup hierarchies, and which of them this process may use.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::error::HostError;
use crate::group_files;

/// Command that gives a user without root privileges a cgroup of their own.
pub const DELEGATE: &str = "systemd-run --user --scope -p Delegate=yes";

/// The part of the cgroup hierarchy in which memory cgroups are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// Version 2, with root privileges: cgroups are created in the root cgroup.
    Root {
        /// Folder of the root cgroup.
        root: PathBuf,
    },
    /// Version 2, in a cgroup that was delegated to this process: cgroups are created in this process's own cgroup.
    Delegated {
        /// Folder of the cgroup of this process.
        own: PathBuf,
    },
    /// Version 1, with root privileges.
    Version1 {
        /// Root folder of the hierarchy of the memory controller.
        memory: PathBuf,
        /// Root folder of the hierarchy of version 2, which provides pressure but no memory controller; `None` if it is
        /// not mounted.
        unified: Option<PathBuf>,
    },
}

/// Mount points of the hierarchy of version 2, and of the hierarchy of version 1 with the memory controller.
#[derive(Debug, Default)]
struct Mounts {
    unified: Option<PathBuf>,
    memory: Option<PathBuf>,
}

impl Mounts {
    /// Parses `/proc/self/mountinfo` (kernel `Documentation/filesystems/proc.rst`, section 3.5).
    fn parse(text: &str) -> Self {
        let mut mounts = Self::default();
        for line in text.lines() {
            let Some((left, right)) = line.split_once(" - ") else {
                continue;
            };
            let Some(place) = left.split(' ').nth(4).map(PathBuf::from) else {
                continue;
            };
            let mut words = right.split(' ');
            let kind = words.next().unwrap_or_default();
            let options = words.nth(1).unwrap_or_default();
            match kind {
                "cgroup2" => mounts.unified = mounts.unified.or(Some(place)),
                "cgroup" if options.split(',').any(|option| option == "memory") => {
                    mounts.memory = mounts.memory.or(Some(place));
                }
                _ => {}
            }
        }
        mounts
    }
}

/// Returns true if this process may write to the file.
fn is_writable(path: &Path) -> bool {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// Returns true if a cgroup may enable the memory controller for its children.
fn has_memory(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.controllers"))
        .is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
}

impl Hierarchy {
    /// Finds where this process can create memory cgroups. If there is no such place, the error names the command that
    /// would allow it.
    pub fn find() -> Result<Self, HostError> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let groups = read("/proc/self/cgroup");
        let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let is_root = rustix::process::geteuid().is_root();
        Self::among(
            &Mounts::parse(&read("/proc/self/mountinfo")),
            own.unwrap_or("/"),
            is_root,
        )
    }

    fn among(mounts: &Mounts, own: &str, is_root: bool) -> Result<Self, HostError> {
        let none = |why: &str, remedy: String| {
            Err(HostError::NoGroup {
                why: why.to_owned(),
                remedy,
            })
        };
        let with_systemd = || format!("start it as `{DELEGATE} pagetide …`, or as root");
        if let Some(unified) = mounts.unified.as_ref().filter(|root| has_memory(root)) {
            // Only the root of the whole hierarchy has no file `cgroup.type`.
            let is_top = !unified.join("cgroup.type").exists();
            if is_top && is_root && is_writable(&unified.join("cgroup.subtree_control")) {
                return Ok(Self::Root {
                    root: unified.clone(),
                });
            }
            let own = unified.join(own.trim_start_matches('/'));
            if !is_writable(&own) || !is_writable(&own.join("cgroup.procs")) {
                return none(
                    &format!(
                        "the control group {} belongs to another user",
                        own.display()
                    ),
                    with_systemd(),
                );
            }
            if !has_memory(&own) {
                return none(
                    &format!("the control group {} may not limit memory", own.display()),
                    with_systemd(),
                );
            }
            return Ok(Self::Delegated { own });
        }
        match &mounts.memory {
            Some(memory) if is_root && is_writable(&memory.join("cgroup.procs")) => {
                Ok(Self::Version1 {
                    memory: memory.clone(),
                    unified: mounts.unified.clone(),
                })
            }
            Some(_) => none(
                "memory groups of version 1 cannot be given to a user",
                "run it as root, or boot with systemd.unified_cgroup_hierarchy=1".to_owned(),
            ),
            None => none(
                "no hierarchy of control groups with the memory controller is mounted",
                "run `mount -t cgroup2 none /sys/fs/cgroup` as root".to_owned(),
            ),
        }
    }

    /// Returns the kind of hierarchy for the record: `v2`, `v2 delegated` or `v1`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Root { .. } => "v2",
            Self::Delegated { .. } => "v2 delegated",
            Self::Version1 { .. } => "v1",
        }
    }

    /// Returns the folder in which cgroups are created.
    pub fn root(&self) -> &Path {
        match self {
            Self::Root { root } => root,
            Self::Delegated { own } => own,
            Self::Version1 { memory, .. } => memory,
        }
    }

    /// Returns the PIDs of the processes that must leave the cgroup in which cgroups are created, before the memory
    /// controller can be enabled.
    pub(crate) fn in_the_way(&self) -> Vec<u32> {
        match self {
            Self::Delegated { own } => group_files::members(own),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
30 20 0:26 / /sys/fs/cgroup rw,relatime shared:9 - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:10 - cgroup cgroup rw,cpu
34 30 0:30 / /sys/fs/cgroup/memory rw,relatime shared:13 - cgroup cgroup rw,memory
39 30 0:35 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    /// Creates a folder that looks like a cgroup of version 2.
    fn group(path: &Path, controllers: &str, is_top: bool) {
        fs::create_dir_all(path).unwrap();
        for (file, text) in [
            ("cgroup.controllers", controllers),
            ("cgroup.subtree_control", ""),
            ("cgroup.procs", ""),
        ] {
            fs::write(path.join(file), text).unwrap();
        }
        if !is_top {
            fs::write(path.join("cgroup.type"), "domain\n").unwrap();
        }
    }

    #[test]
    fn mounts_are_found_in_a_hybrid_layout() {
        let mounts = Mounts::parse(HYBRID);
        assert_eq!(mounts.memory.unwrap(), Path::new("/sys/fs/cgroup/memory"));
        assert_eq!(mounts.unified.unwrap(), Path::new("/sys/fs/cgroup/unified"));
    }

    #[test]
    fn the_place_follows_from_mounts_and_rights() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        group(&top, "cpu memory\n", true);
        group(&top.join("a/b"), "memory\n", false);
        group(&top.join("c"), "cpu\n", false);
        let unified = |path: &Path| Mounts {
            unified: Some(path.to_owned()),
            memory: None,
        };
        let found = Hierarchy::among(&unified(&top), "/a/b", true).unwrap();
        assert_eq!(found, Hierarchy::Root { root: top.clone() });
        let found = Hierarchy::among(&unified(&top), "/a/b", false).unwrap();
        let own = top.join("a/b");
        assert_eq!(found, Hierarchy::Delegated { own });
        let why = Hierarchy::among(&unified(&top), "/c", false).unwrap_err();
        assert!(why.to_string().contains(DELEGATE), "{why}");
        // The root of a container's namespace is not the root of the whole hierarchy.
        let found = Hierarchy::among(&unified(&top.join("a/b")), "/", true).unwrap();
        assert_eq!(found.name(), "v2 delegated");
        let why = Hierarchy::among(&Mounts::default(), "/", true).unwrap_err();
        assert!(why.to_string().contains("mount -t cgroup2"), "{why}");
        let memory = folder.path().join("v1");
        group(&memory, "", true);
        let hybrid = Mounts {
            unified: None,
            memory: Some(memory),
        };
        assert_eq!(Hierarchy::among(&hybrid, "/", true).unwrap().name(), "v1");
        let why = Hierarchy::among(&hybrid, "/", false).unwrap_err();
        assert!(why.to_string().contains("as root"), "{why}");
    }
}
