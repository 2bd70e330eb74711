//! The file system of a trial: its type, and the device on which it is.

use std::fmt;
use std::str::FromStr;

use pagetide_quantity::Bytes;

use crate::disk::{DiskError, DiskSpec};
use crate::text::serde_as_text;

/// Type of a file system that a trial can use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FileSystem {
    /// ext4 without a journal.
    #[default]
    Ext4,
    /// XFS with a log of 16 MiB.
    Xfs,
    /// btrfs, with a single copy of data and metadata.
    Btrfs,
    /// tmpfs: files in memory and swap, without a disk.
    Tmpfs,
}

impl FileSystem {
    /// All types of file systems.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::Tmpfs];

    /// Returns the name of the file system, as used by the kernel and by users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }

    /// Returns the size of a device for this file system that has the same capacity as an ext4 file system on a device
    /// of `size`; 0 without a device.
    ///
    /// XFS has a log of 16 MiB in one of its four groups. btrfs allocates space in large chunks, and refuses small
    /// devices.
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

/// The device on which the file system of a trial is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FilesOn {
    /// A simulated solid-state disk, with the latency of the swap disk if there is one.
    #[default]
    Ssd,
    /// A simulated disk whose requests take no time.
    Null,
    /// A separate simulated rotating disk.
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

/// The file system of a trial: type and device. The text form omits defaults: `ssd`, `xfs`, `disk:8ms,40MB/s`, `xfs on
/// disk:8ms,40MB/s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FilesSpec {
    /// Type of the file system.
    pub system: FileSystem,
    /// The device on which the file system is.
    pub on: FilesOn,
}

/// Why a text does not describe a file system or a device for one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// There is no file system with this name.
    #[error("`{0}` is not a file system for a guest: use ext4, xfs, btrfs or tmpfs")]
    System(String),
    /// The device is not known and cannot be parsed as a disk.
    #[error("files lie on ssd, null or a disk: {0}")]
    Disk(#[source] DiskError),
}

impl FilesSpec {
    /// Returns this specification with the given parts replaced; `None` keeps a part.
    #[must_use]
    pub fn with(self, system: Option<FileSystem>, on: Option<FilesOn>) -> Self {
        Self {
            system: system.unwrap_or(self.system),
            on: on.unwrap_or(self.on),
        }
    }

    /// Returns true for the default file system, which old versions always used. The default is omitted from the
    /// subject, so that old subjects keep their keys.
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the form that serde's attribute calls"
    )]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the rotating disk on which the file system is; `None` if it is on another device.
    pub fn disk(self) -> Option<DiskSpec> {
        match (self.system, self.on) {
            (FileSystem::Tmpfs, _) | (_, FilesOn::Ssd | FilesOn::Null) => None,
            (_, FilesOn::Disk(disk)) => Some(disk),
        }
    }

    /// Returns the text for a label, appended after the text of the swap; empty for the default file system.
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
