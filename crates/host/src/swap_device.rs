//! A swap area created by pagetide: a loop device on an unnamed file, or a free zram device.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pagetide_quantity::{Bytes, PAGE_SIZE};

use crate::change::{Change, Left, SettingFile};
use crate::error::{HostError, io};
use crate::foreign::ForeignUse;
use crate::group::Group;
use crate::journal::{Entry, Journal};
use crate::loop_control::LoopDevice;
use crate::loop_device;
use crate::swap_header::{format, new_uuid, node};

/// Flags of swapon(2) with the highest priority, so that pages of a workload go to this area first. Source: kernel
/// `include/linux/swap.h`, `SWAP_FLAG_PREFER` and `SWAP_FLAG_PRIO_MASK`.
const HIGHEST: libc::c_int = 0x8000 | 0x7fff;

/// Kind of device for a swap area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwapOn {
    /// A loop device on a new file in this folder, which must be on a disk.
    Loop {
        /// Folder for the unnamed file.
        folder: PathBuf,
    },
    /// A zram device that is not in use.
    Zram {
        /// Name of the compressor, such as `lz4`.
        compressor: String,
    },
}

/// An active swap area. When it is dropped, it is switched off, unless reading back pages of other processes could kill
/// these processes.
#[derive(Debug)]
pub struct SwapDevice {
    /// Path of the device.
    device: PathBuf,
    size: Bytes,
    is_direct: bool,
    /// Name of the zram device; `None` for a loop device.
    zram: Option<String>,
    entries: Vec<Entry>,
    journal: Journal,
}

impl SwapDevice {
    /// Sets up a device of this size and switches swap on. Fails if no device is free, or if the kernel refuses the
    /// swap area.
    pub fn switch_on(journal: &Journal, on: &SwapOn, size: Bytes) -> Result<Self, HostError> {
        let size = Bytes(size.0.next_multiple_of(PAGE_SIZE));
        let uuid = new_uuid();
        let mut swap = Self {
            device: PathBuf::new(),
            size,
            is_direct: true,
            zram: None,
            entries: Vec::new(),
            journal: journal.clone(),
        };
        // Keeps a loop device connected until it is used for swap.
        let _connected: Option<LoopDevice> = match on {
            SwapOn::Loop { folder } => {
                let (device, entry) = loop_device::connect(journal, folder, size)?;
                swap.entries.push(entry);
                swap.device.clone_from(&device.path);
                swap.is_direct = device.is_direct;
                Some(device)
            }
            SwapOn::Zram { compressor } => {
                let name = free_zram().map_err(|(why, remedy)| HostError::NoSwap {
                    on: "zram",
                    size,
                    why,
                    remedy: remedy.to_owned(),
                })?;
                swap.device = PathBuf::from(node(&name));
                swap.zram = Some(name.clone());
                swap.set_up_zram(&name, compressor, &uuid)?;
                None
            }
        };
        let device = swap.device.display().to_string();
        format(&device, size, &uuid).map_err(io("formatting swap on", &device))?;
        let change = Change::Swap {
            device: device.clone(),
            uuid,
        };
        let path = CString::new(device.as_str()).unwrap_or_default();
        let (entry, ()) = journal.make(change, || {
            // SAFETY: the path is a C string that lives through the call, which keeps no pointer to it.
            if unsafe { libc::swapon(path.as_ptr(), HIGHEST) } == 0 {
                return Ok(());
            }
            let why = io::Error::last_os_error();
            Err(HostError::NoSwap {
                on: if swap.zram.is_some() {
                    "zram"
                } else {
                    "a loop device"
                },
                size,
                why: format!("{device}: {why}"),
                remedy: "run it as root, or use the swap that this machine has".to_owned(),
            })
        })?;
        swap.entries.push(entry);
        Ok(swap)
    }

    /// Sets compressor and size of a free zram device, and records this in the journal.
    fn set_up_zram(&mut self, name: &str, compressor: &str, uuid: &str) -> Result<(), HostError> {
        let folder = Path::new("/sys/block").join(name);
        let path = folder.join("comp_algorithm");
        let shown = fs::read_to_string(&path).map_err(io("reading", path.display().to_string()))?;
        let old = chosen(&shown).to_owned();
        if old != compressor {
            let file = SettingFile {
                path: path.clone(),
                old,
                ours: Some(compressor.to_owned()),
            };
            let change = Change::Settings { files: vec![file] };
            let (entry, ()) = self.journal.make(change, || {
                fs::write(&path, compressor).map_err(io(
                    "setting the compressor with",
                    path.display().to_string(),
                ))
            })?;
            self.entries.push(entry);
        }
        let change = Change::Zram {
            name: name.to_owned(),
            size: self.size.0,
            uuid: uuid.to_owned(),
        };
        let path = folder.join("disksize");
        let (entry, ()) = self.journal.make(change, || {
            fs::write(&path, self.size.0.to_string())
                .map_err(io("setting the size with", path.display().to_string()))
        })?;
        self.entries.push(entry);
        Ok(())
    }

    /// Returns the path of the device.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Returns the size of the area.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Returns the name of the zram device; `None` for a loop device.
    pub fn zram(&self) -> Option<&str> {
        self.zram.as_deref()
    }

    /// Returns true if reads and writes of a loop device bypass the page cache. Always true for zram.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Returns the used space of the area, and the swap space of the cgroup `group` and of all others. Cheap enough to
    /// be called 20 times a second.
    pub fn foreign_use(&self, group: &Group) -> ForeignUse {
        ForeignUse::of(&self.device.display().to_string(), Some(group.path()))
    }

    /// Switches the area off and removes its device. The workload's cgroup must be empty. If pages of other processes
    /// are in the area, and there is no room to read them back, it stays active, and the returned value says so.
    pub fn switch_off(mut self) -> Vec<Left> {
        let entries = std::mem::take(&mut self.entries);
        self.journal.undo(&entries)
    }
}

impl Drop for SwapDevice {
    fn drop(&mut self) {
        // What could not be undone stays in the journal.
        self.journal.undo(&self.entries);
    }
}

/// Returns the choice in brackets from a file that lists choices, or the whole text if there are no brackets.
fn chosen(shown: &str) -> &str {
    let shown = shown.trim();
    shown
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or(shown)
}

/// Returns the name of a zram device that has no size yet. Never adds a device by reading `hot_add`, because that
/// device would stay after the trial. The error comes with a remedy.
fn free_zram() -> Result<String, (String, &'static str)> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("zram"))
        .collect();
    names.sort();
    if names.is_empty() {
        return Err((
            "there is no zram device".to_owned(),
            "run `modprobe zram` as root",
        ));
    }
    let is_free = |name: &&String| {
        let state = Path::new("/sys/block").join(name).join("initstate");
        fs::read_to_string(state).is_ok_and(|state| state.trim() == "0")
            && Path::new(&node(name)).exists()
    };
    names.iter().find(is_free).cloned().ok_or((
        format!("{} are in use", names.join(", ")),
        "free one with `zramctl --reset`, or use a loop device",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_in_brackets_is_found() {
        assert_eq!(chosen("[lzo-rle] lzo lz4\n"), "lzo-rle");
        assert_eq!(chosen("lz4\n"), "lz4");
    }
}
