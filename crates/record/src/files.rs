//! The file system of a trial: which it is, and what it lies on.

use std::fmt;
use std::str::FromStr;

use pagetide_quantity::Bytes;
use serde::{Deserialize, Serialize};

use crate::disk::{DiskError, DiskSpec};
use crate::subject::serde_as_text;

/// Which file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FileSystem {
    /// ext4 without a journal.
    #[default]
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs, one copy of everything.
    Btrfs,
    /// Files in memory and swap, on no disk.
    Tmpfs,
}

impl FileSystem {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::Tmpfs];

    /// Its name, as the kernel and users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }

    /// Size of the device on which as much fits as on an ext4 file system of this size; nothing for one without a device.
    ///
    /// XFS has a log of 16 MiB within one of its four groups. btrfs hands out space in large chunks, and refuses small devices.
    pub fn device(self, size: Bytes) -> Bytes {
        const MIB: u64 = 1 << 20;
        let bytes = match self {
            Self::Ext4 => size.0,
            Self::Xfs => (size.0 + size.0 / 32 + 32 * MIB).max(112 * MIB),
            Self::Btrfs => size.0 + size.0 / 4 + 160 * MIB,
            Self::Tmpfs => 0,
        };
        Bytes(bytes.next_multiple_of(MIB))
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the file system of a trial lies on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FilesOn {
    /// A simulated solid-state disk, with the latency of the one that is swapped to where there is one.
    #[default]
    Ssd,
    /// A simulated disk that takes no time.
    Null,
    /// A disk with an arm of its own.
    Disk(DiskSpec),
}

impl fmt::Display for FilesOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssd => f.pad("ssd"),
            Self::Null => f.pad("null"),
            Self::Disk(disk) => disk.fmt(f),
        }
    }
}

impl FromStr for FilesOn {
    type Err = FilesError;

    fn from_str(text: &str) -> Result<Self, FilesError> {
        match text {
            "ssd" => Ok(Self::Ssd),
            "null" => Ok(Self::Null),
            _ => text.parse().map(Self::Disk).map_err(FilesError::Disk),
        }
    }
}

/// The file system of a trial. Its text names what is not usual: `ssd`, `xfs`, `disk:8ms,40MB/s`, `xfs on disk:8ms,40MB/s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FilesSpec {
    /// Which it is.
    pub system: FileSystem,
    /// What it lies on.
    pub on: FilesOn,
}

/// A text that describes no file system, or no place of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// There is none of this name.
    #[error("`{0}` is no file system of a guest: take ext4, xfs, btrfs or tmpfs")]
    System(String),
    /// What it lies on is no disk.
    #[error("files lie on ssd, null or a disk: {0}")]
    Disk(#[source] DiskError),
}

impl FilesSpec {
    /// This one, but for what is named.
    #[must_use]
    pub fn with(self, system: Option<FileSystem>, on: Option<FilesOn>) -> Self {
        Self {
            system: system.unwrap_or(self.system),
            on: on.unwrap_or(self.on),
        }
    }

    /// Whether it is what every trial had before there was a choice. Such subjects are written as they always were.
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the form that serde's attribute calls"
    )]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The disk with an arm that it lies on, if it does.
    pub fn disk(self) -> Option<DiskSpec> {
        match (self.system, self.on) {
            (FileSystem::Tmpfs, _) | (_, FilesOn::Ssd | FilesOn::Null) => None,
            (_, FilesOn::Disk(disk)) => Some(disk),
        }
    }

    /// What a label says of it after the swap; nothing where it is as ever.
    pub fn beside_swap(self) -> String {
        if self.is_default() {
            String::new()
        } else {
            format!(" · files on {self}")
        }
    }
}

impl fmt::Display for FilesSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.system, self.on) {
            (FileSystem::Ext4, on) => on.fmt(f),
            (system, FilesOn::Ssd) => system.fmt(f),
            (system, on) => f.pad(&format!("{system} on {on}")),
        }
    }
}

impl FromStr for FileSystem {
    type Err = FilesError;

    fn from_str(text: &str) -> Result<Self, FilesError> {
        let found = Self::ALL.into_iter().find(|system| system.name() == text);
        found.ok_or_else(|| FilesError::System(text.to_owned()))
    }
}

impl FromStr for FilesSpec {
    type Err = FilesError;

    fn from_str(text: &str) -> Result<Self, FilesError> {
        let (system, on) = match text.split_once(" on ") {
            Some((system, on)) => (Some(system.parse()?), Some(on.parse()?)),
            None => match text.parse() {
                Ok(system) => (Some(system), None),
                Err(_) => (None, Some(text.parse()?)),
            },
        };
        Ok(Self::default().with(system, on))
    }
}

serde_as_text!(FilesSpec);
serde_as_text!(FileSystem);
serde_as_text!(FilesOn);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_and_its_place_survive_their_text_form() {
        for text in [
            "ssd",
            "xfs",
            "btrfs",
            "tmpfs",
            "null",
            "btrfs on null",
            "disk:8ms,40MB/s",
            "xfs on disk:8ms,20MB/s",
        ] {
            assert_eq!(text.parse::<FilesSpec>().unwrap().to_string(), text);
        }
        let usual: FilesSpec = "ext4".parse().unwrap();
        assert!(usual.is_default());
        let why = "zfs".parse::<FileSystem>().unwrap_err().to_string();
        assert!(why.contains("xfs, btrfs or tmpfs"), "{why}");
        assert!("xfs on floppy".parse::<FilesSpec>().is_err());
    }

    #[test]
    fn a_device_has_room_for_what_its_file_system_takes_for_itself() {
        let size = Bytes::from_mib(64);
        assert_eq!(FileSystem::Ext4.device(size), size);
        assert_eq!(FileSystem::Tmpfs.device(size), Bytes(0));
        for system in [FileSystem::Xfs, FileSystem::Btrfs] {
            assert!(system.device(size).0 >= size.0 + (16 << 20), "{system}");
        }
    }

    #[test]
    fn files_in_memory_lie_on_no_disk() {
        let spec: FilesSpec = "tmpfs on disk".parse().unwrap();
        assert_eq!(spec.disk(), None);
        let spec: FilesSpec = "xfs on disk".parse().unwrap();
        assert_eq!(spec.disk(), Some(DiskSpec::default()));
    }
}
