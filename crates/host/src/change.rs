//! The changes that pagetide makes to a running machine.

use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A setting's file, with its value before the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Value before the change.
    pub old: String,
    /// Value that pagetide writes; `None` if the file may only change as a side effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<String>,
}

/// A change to the machine that outlives the process that makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Change {
    /// A cgroup was created. Undone by killing its processes and removing it, with all cgroups in it.
    Group {
        /// Folder of the cgroup.
        path: PathBuf,
    },
    /// A cgroup was created, and the processes of its parent were moved into it. Undone by moving them back and
    /// removing it.
    Leaf {
        /// Folder of the cgroup.
        path: PathBuf,
    },
    /// The memory controller was enabled for the children of a cgroup.
    Controller {
        /// Folder of the cgroup.
        group: PathBuf,
    },
    /// Files of settings were written. Undone by writing the old values, unless no file has pagetide's value any more.
    /// A file with another value is left as it is, except one that changed as a side effect.
    Settings {
        /// The files that were written or may change as a side effect.
        files: Vec<SettingFile>,
    },
    /// A loop device was connected to a file.
    Loop {
        /// Number of the loop device.
        number: u32,
        /// Number of the device (`st_dev`) on which the file is.
        device: u64,
        /// Inode number of the file.
        inode: u64,
        /// True if the loop device itself did not exist before and was added.
        added: bool,
    },
    /// An unused zram device was configured.
    Zram {
        /// Name of the device, such as `zram0`.
        name: String,
        /// Size of the device in bytes.
        size: u64,
        /// UUID in the header of the swap area on the device.
        uuid: String,
    },
    /// A swap area was switched on.
    Swap {
        /// Path of the device.
        device: String,
        /// UUID in the header of the swap area.
        uuid: String,
    },
    /// A folder was created. Undone by removing it with its contents.
    Folder {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A file or device node was created.
    File {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file system was mounted.
    Mount {
        /// Mount point.
        path: PathBuf,
    },
    /// Tracing instances were created in tracefs.
    TraceInstance {
        /// Name of the instance. If it ends with a hyphen, each instance has this name followed by a number.
        name: String,
    },
}

impl Change {
    /// Returns true if the change may still be in effect after a reboot. All other changes exist only in the kernel's
    /// memory.
    pub fn survives_boot(&self) -> bool {
        matches!(self, Self::Folder { .. } | Self::File { .. })
    }

    /// Returns the command or step with which the user can undo the change.
    pub fn by_hand(&self) -> String {
        match self {
            Self::Group { path } | Self::Leaf { path } => {
                format!(
                    "end the processes in {0}/cgroup.procs, then `rmdir {0}`",
                    path.display()
                )
            }
            Self::Controller { group } => {
                format!(
                    "`echo -memory > {}/cgroup.subtree_control`",
                    group.display()
                )
            }
            Self::Settings { files } => {
                let lines = files.iter().filter(|file| file.ours.is_some());
                let lines: Vec<String> = lines
                    .map(|file| format!("`echo '{}' > {}`", file.old, file.path.display()))
                    .collect();
                lines.join(", ")
            }
            Self::Loop { number, .. } => format!("`losetup -d /dev/loop{number}`"),
            Self::Zram { name, .. } => format!("`echo 1 > /sys/block/{name}/reset`"),
            Self::Swap { device, .. } => format!(
                "wait until no process outside of pagetide uses {device} (`swapon --show`), then `swapoff {device}`"
            ),
            Self::Folder { path } => format!("`rm -r {}`", path.display()),
            Self::File { path } => format!("`rm {}`", path.display()),
            Self::Mount { path } => format!("`umount {}`", path.display()),
            Self::TraceInstance { name } => {
                let all = if name.ends_with('-') { "[0-9]*" } else { "" };
                format!("`rmdir /sys/kernel/tracing/instances/{name}{all}`")
            }
        }
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group { path } | Self::Leaf { path } => {
                write!(f, "the control group {}", path.display())
            }
            Self::Controller { group } => {
                write!(
                    f,
                    "the memory controller for children of {}",
                    group.display()
                )
            }
            Self::Settings { files } => {
                let names = files.iter().filter(|file| file.ours.is_some());
                let names: Vec<_> = names.map(|file| file.path.display().to_string()).collect();
                write!(f, "the setting {}", names.join(", "))
            }
            Self::Loop { number, .. } => write!(f, "the loop device /dev/loop{number}"),
            Self::Zram { name, .. } => write!(f, "the zram device {name}"),
            Self::Swap { device, .. } => write!(f, "swap on {device}"),
            Self::Folder { path } => write!(f, "the folder {}", path.display()),
            Self::File { path } => write!(f, "the file {}", path.display()),
            Self::Mount { path } => write!(f, "the mount on {}", path.display()),
            Self::TraceInstance { name } => write!(f, "the tracing instance {name}"),
        }
    }
}

/// A change that could not be undone. It stays in the journal, and the next start tries again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The change that is still in effect.
    pub change: Change,
    /// Why it could not be undone.
    pub why: String,
}

impl Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, why } = self;
        write!(
            f,
            "{change} is left as it is: {why}; the next start of pagetide tries again; by hand: {}",
            change.by_hand()
        )
    }
}
