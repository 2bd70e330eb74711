//! Memory cgroups that exist in the kernel: joining them, changing their limits, and requesting reclaim from them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pagetide_quantity::{Bytes, Nanos, Pages};
use pagetide_system::{Counters, Syntax};

use crate::clock::Clock;
use crate::error::Stop;
use crate::group::Group;

use super::spec::{GroupSpec, Limit};

/// Smallest amount of memory in bytes that the kernel charges to a cgroup.
const PAGE: u64 = 4096;

/// A memory cgroup that was created. It is not removed, because the guest ends after the trial.
#[derive(Debug)]
pub(crate) struct MemoryGroup {
    /// Name of the cgroup, which is also the name of its folder.
    name: String,
    group: Group,
}

/// Result of a request to reclaim.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reclaimed {
    /// Requested amount.
    pub asked: Bytes,
    /// Amount that the kernel reclaimed from the group during the request, according to its counter `pgsteal`. Since
    /// 5.19 the counter may lag by up to 64 pages, which then appear in the next reading.
    pub taken: Bytes,
    /// Amount by which the memory usage of the group fell during the request; 0 if it grew.
    pub freed: Bytes,
    /// Time that the request took.
    pub time: Nanos,
    /// True if the kernel reported that it reclaimed at least the requested amount.
    pub is_complete: bool,
}

impl MemoryGroup {
    /// Creates a cgroup below the root cgroup, and sets its limits. Fails if the kernel lacks memory cgroups or one of
    /// the limits.
    pub(crate) fn create(spec: &GroupSpec) -> Result<Self, Stop> {
        Self::create_at(&spec.name, spec)
    }

    /// Returns an existing cgroup as a `MemoryGroup`, for reading its counters.
    pub(crate) fn existing(name: impl Into<String>, group: Group) -> Self {
        Self {
            name: name.into(),
            group,
        }
    }

    /// Returns the cgroup, for starting programs in it.
    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// Creates a group inside this group. Processes may then join the new group, but no longer this one.
    pub(crate) fn create_inside(&self, spec: &GroupSpec) -> Result<Self, Stop> {
        Self::create_at(&format!("{}/{}", self.name, spec.name), spec)
    }

    fn create_at(path: &str, spec: &GroupSpec) -> Result<Self, Stop> {
        let cannot = format!(
            "cannot create the memory group {path}, for which the kernel needs memory control groups (CONFIG_MEMCG)"
        );
        let group = Group::open(path).map_err(Stop::system(cannot))?;
        let created = Self {
            name: path.to_owned(),
            group,
        };
        for (limit, size) in &spec.limits {
            created.set(*limit, Some(*size))?;
        }
        Ok(created)
    }

    /// Returns the name of the group; for a group inside another one, both names with a slash between them.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of one of the group's files.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.group.folder().join(name)
    }

    /// Sets a limit, or removes it if `size` is `None`.
    pub(crate) fn set(&self, limit: Limit, size: Option<Bytes>) -> Result<(), Stop> {
        let file = limit.file();
        let value = size.map_or("max".to_owned(), |size| size.0.to_string());
        let lacks = match limit {
            Limit::ZswapMax => " (Linux has it since 5.19, with CONFIG_ZSWAP)",
            _ => "",
        };
        let cannot = format!("cannot set {file} of group {} to {value}{lacks}", self.name);
        write(&self.file(&file), &value).map_err(Stop::system(cannot))
    }

    /// Moves the calling process into the group. Memory that it has already used stays charged to its old
    /// group.
    pub(crate) fn join(&self) -> Result<(), Stop> {
        // Writing 0 adds the writing process to the group.
        let cannot = format!("cannot join the memory group {}", self.name);
        write(&self.group.procs_file(), "0").map_err(Stop::system(cannot))
    }

    /// Requests the kernel to reclaim this amount from the group. Returns what was reclaimed. Fails if the kernel lacks
    /// `memory.reclaim`.
    pub(crate) fn reclaim(&self, clock: Clock, size: Bytes) -> Result<Reclaimed, Stop> {
        let path = self.file("memory.reclaim");
        let cannot = || {
            Stop::system(format!(
                "cannot reclaim {size} from group {} by memory.reclaim, which Linux has since 5.19",
                self.name
            ))
        };
        let mut file = File::options().write(true).open(&path).map_err(cannot())?;
        let text = size.0.to_string();
        let (stolen, used) = (self.stolen(), self.used());
        let start = clock.now();
        let written = file.write_all(text.as_bytes());
        let time = clock.now().since(start);
        let (stolen_after, used_after) = (self.stolen(), self.used());
        let is_complete = match written {
            Ok(()) => true,
            // EAGAIN: the kernel reclaimed less than the requested amount.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => return Err(cannot()(error)),
        };
        Ok(Reclaimed {
            asked: size,
            taken: Pages(stolen_after.saturating_sub(stolen)).bytes(),
            freed: Bytes(used.0.saturating_sub(used_after.0) / PAGE * PAGE),
            time,
            is_complete,
        })
    }

    /// Returns the current memory usage of the group; 0 if it cannot be read.
    pub(crate) fn used(&self) -> Bytes {
        Bytes(self.group.number("memory.current").unwrap_or(0))
    }

    /// Returns the current swap usage of the group; 0 if it cannot be read.
    pub(crate) fn swapped(&self) -> Bytes {
        Bytes(self.group.number("memory.swap.current").unwrap_or(0))
    }

    /// Returns the counters in `memory.stat` of the group; none if the file cannot be read.
    pub(crate) fn stat(&self) -> Counters {
        read(&self.file("memory.stat"), Syntax::KeyValue)
    }

    /// Returns the number of pages that have been reclaimed from the group so far.
    fn stolen(&self) -> u64 {
        self.stat().get("pgsteal").unwrap_or(0)
    }
}

/// Writes text to a file that must already exist.
fn write(path: &Path, text: &str) -> io::Result<()> {
    File::options()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}

/// Reads counters from a file; none if the file cannot be read.
pub(super) fn read(path: &Path, syntax: Syntax) -> Counters {
    let mut counters = Counters::new();
    counters.parse(&fs::read(path).unwrap_or_default(), syntax);
    counters
}
