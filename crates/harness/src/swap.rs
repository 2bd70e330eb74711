//! Sets up swap for a trial on zram or a disk, with or without zswap, and removes it afterwards.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pagetide_quantity::{Bytes, PAGE_SIZE};
use pagetide_record::swap::tiers::ZramDevice;

use crate::error::{HarnessError, io};
use crate::fate::MachineFate;

/// An enabled swap area of a trial. On a machine that continues, it is disabled on drop.
#[derive(Debug)]
#[must_use = "swap is switched off when this is dropped"]
pub struct Swap {
    device: String,
    /// Folder of the zram device in sysfs; `None` if the swap area is on a disk.
    zram: Option<PathBuf>,
    fate: MachineFate,
}

impl Swap {
    /// Sets the size and the compressor of an unused zram device, and enables swap on the device.
    pub fn on_zram(
        device: &str,
        size: Bytes,
        compressor: &str,
        fate: MachineFate,
    ) -> Result<Self, HarnessError> {
        Self::on_zram_with(device, size, &[("comp_algorithm", compressor)], None, fate)
    }

    /// Writes the attributes of an unused zram device, sets its size, and enables swap on the device. `attributes` are
    /// pairs of file name and value, see [`zram_attributes`]. Without a priority the kernel chooses one.
    pub fn on_zram_with(
        device: &str,
        size: Bytes,
        attributes: &[(&str, &str)],
        priority: Option<u16>,
        fate: MachineFate,
    ) -> Result<Self, HarnessError> {
        present(device)?;
        let folder = sysfs(device);
        let set = |name: &str, value: &str| {
            let path = folder.join(name);
            fs::write(&path, value).map_err(io("setting", format!("{} to {value}", path.display())))
        };
        for (name, value) in attributes {
            set(name, value)?;
        }
        set("disksize", &size.0.to_string())?;
        // From here on the device must be reset, even if swapon fails.
        let swap = Self {
            device: device.to_owned(),
            zram: Some(folder),
            fate,
        };
        swap.switch_on(size, priority)?;
        Ok(swap)
    }

    /// Enables swap on the first `size` bytes of a disk. The pages of a simulated disk must already be allocated, see
    /// [`fill`].
    pub fn on_disk(device: &str, size: Bytes, fate: MachineFate) -> Result<Self, HarnessError> {
        Self::on_disk_at(device, size, None, fate)
    }

    /// Enables swap on the first `size` bytes of a disk or of a file without holes. Without a priority the kernel chooses
    /// one.
    pub fn on_disk_at(
        device: &str,
        size: Bytes,
        priority: Option<u16>,
        fate: MachineFate,
    ) -> Result<Self, HarnessError> {
        present(device)?;
        let swap = Self {
            device: device.to_owned(),
            zram: None,
            fate,
        };
        swap.switch_on(size, priority)?;
        Ok(swap)
    }

    /// Returns the path of the swap device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Returns the folder of the zram device in sysfs; `None` if the swap area is on a disk.
    pub fn zram(&self) -> Option<&Path> {
        self.zram.as_deref()
    }

    fn switch_on(&self, size: Bytes, priority: Option<u16>) -> Result<(), HarnessError> {
        format(&self.device, size)?;
        let path = CString::new(self.device.as_str()).unwrap_or_default();
        let flags = priority.map_or(0, |priority| PREFER | libc::c_int::from(priority));
        // SAFETY: the path is a C string that lives through the call, which keeps no pointer to it.
        if unsafe { libc::swapon(path.as_ptr(), flags) } != 0 {
            let why = io::Error::last_os_error();
            return Err(io("switching on swap on", &self.device)(why));
        }
        Ok(())
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        if self.fate == MachineFate::Ends {
            return;
        }
        let path = CString::new(self.device.as_str()).unwrap_or_default();
        // SAFETY: the path is a C string that lives through the call, which keeps no pointer to it.
        unsafe { libc::swapoff(path.as_ptr()) };
        if let Some(folder) = &self.zram {
            // The kernel refuses this while the device is in use.
            let _ = fs::write(folder.join("reset"), "1");
        }
    }
}

/// Flag of swapon(2): the lower bits of the flags contain a priority. Source: kernel `include/linux/swap.h`.
const PREFER: libc::c_int = 0x8000;

/// Returns the folder of a block device in sysfs.
pub fn sysfs(device: &str) -> PathBuf {
    let name = device.rsplit('/').next().unwrap_or(device);
    Path::new("/sys/block").join(name)
}

/// Returns the attributes of a zram device, as pairs of file name and value, in the order in which the kernel
/// accepts them. `backing` is the path of the backing device. Source: kernel
/// `Documentation/admin-guide/blockdev/zram.rst`.
pub fn zram_attributes(zram: &ZramDevice, backing: Option<&str>) -> Vec<(&'static str, String)> {
    let compressor = zram.compressor.unwrap_or_default().name();
    let mut attributes = vec![("comp_algorithm", compressor.to_owned())];
    if let Some(second) = zram.recompress {
        attributes.push((
            "recomp_algorithm",
            format!("algo={} priority=1", second.name()),
        ));
    }
    if let Some(device) = backing {
        attributes.push(("backing_dev", device.to_owned()));
    }
    if let Some(limit) = zram.limit {
        attributes.push(("mem_limit", limit.0.to_string()));
    }
    attributes
}

/// File of the root cgroup that allows zswap to write pages back to the swap area.
const ZSWAP_WRITEBACK: &str = "/sys/fs/cgroup/memory.zswap.writeback";

/// Switches zswap's shrinker on if `shrinker` is true. Forbids zswap to write pages back to the swap area if
/// `writeback` is false. Fails if the kernel does not accept a value.
pub fn zswap_reclaims(shrinker: bool, writeback: bool) -> Result<(), HarnessError> {
    zswap_reclaims_in(
        Path::new(ZSWAP),
        Path::new(ZSWAP_WRITEBACK),
        shrinker,
        writeback,
    )
}

fn zswap_reclaims_in(
    folder: &Path,
    group: &Path,
    shrinker: bool,
    writeback: bool,
) -> Result<(), HarnessError> {
    let wanted = [
        (
            "shrinker_enabled",
            folder.join("shrinker_enabled"),
            "Y",
            shrinker,
        ),
        ("writeback", group.to_owned(), "0", !writeback),
    ];
    for (what, path, value, _) in wanted.iter().filter(|(.., is_wanted)| *is_wanted) {
        // A value that the kernel does not accept is detected when it is read back.
        let _ = fs::write(path, value);
        let took = fs::read_to_string(path).unwrap_or_default();
        if took.trim() != *value {
            return Err(HarnessError::Zswap {
                what,
                wanted: (*value).to_owned(),
                took: took.trim().to_owned(),
            });
        }
    }
    Ok(())
}

/// Folder of the parameters of zswap.
const ZSWAP: &str = "/sys/module/zswap/parameters";

/// Enables zswap with this compressor and pool. The old state is not restored, so the machine must end with the trial.
///
/// Source: kernel `mm/zswap.c`. Before it is first enabled, zswap accepts any name for compressor and pool. When it is
/// enabled, it replaces names that it does not have by its defaults, which the parameter files then show. Kernels since
/// 6.18 have only zsmalloc, and no file for the pool.
pub fn zswap(compressor: &str, pool: &str) -> Result<(), HarnessError> {
    zswap_in(Path::new(ZSWAP), compressor, pool)
}

fn zswap_in(folder: &Path, compressor: &str, pool: &str) -> Result<(), HarnessError> {
    let taken = |what: &str| {
        let text = fs::read_to_string(folder.join(what)).ok()?;
        Some(text.trim().to_owned())
    };
    let refused = |what: &'static str, wanted: &str, took: Option<String>| HarnessError::Zswap {
        what,
        wanted: wanted.to_owned(),
        took: took.unwrap_or_else(|| "nothing".to_owned()),
    };
    let mut wanted = vec![
        ("compressor", compressor),
        ("zpool", pool),
        ("enabled", "Y"),
    ];
    if pool == "zsmalloc" && folder.exists() && !folder.join("zpool").exists() {
        wanted.remove(1);
    }
    for (what, value) in &wanted {
        // A value that the kernel does not accept is detected when it is read back.
        let _ = fs::write(folder.join(what), value);
    }
    for (what, value) in wanted {
        let took = taken(what);
        if took.as_deref() != Some(value) {
            return Err(refused(what, value, took));
        }
    }
    Ok(())
}

/// Checks that a device exists. Fails with [`HarnessError::NoDevice`] otherwise.
pub fn present(device: &str) -> Result<(), HarnessError> {
    if Path::new(device).exists() {
        Ok(())
    } else {
        Err(HarnessError::NoDevice {
            device: device.to_owned(),
        })
    }
}

/// Writes the first `size` bytes of a simulated disk, so that its pages are allocated now. A disk that allocates memory
/// during swap-out would deadlock in reclaim.
pub fn fill(device: &str, size: Bytes) -> Result<(), HarnessError> {
    const CHUNK_BYTES: usize = 1 << 20;
    /// A page-aligned buffer, as required for direct I/O.
    #[repr(C, align(4096))]
    struct AlignedBuffer([u8; CHUNK_BYTES]);
    let zeros: Box<AlignedBuffer> = {
        // SAFETY: all zeros are a valid value of a byte array; allocated zeroed so that it never lies on the stack.
        unsafe { Box::<AlignedBuffer>::new_zeroed().assume_init() }
    };
    let fault = |e| io("filling", device)(e);
    let file = File::options()
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(device)
        .map_err(fault)?;
    let mut at = 0;
    while at < size.0 {
        let length = usize::try_from(size.0 - at)
            .unwrap_or(CHUNK_BYTES)
            .min(CHUNK_BYTES);
        file.write_all_at(&zeros.0[..length], at).map_err(fault)?;
        at += length as u64;
    }
    Ok(())
}

/// Writes a swap header.
/// Source: kernel `include/linux/swap.h`, `union swap_header`: version, last page and number of bad pages at offset
/// 1024, magic `SWAPSPACE2` in the last ten bytes of the first page.
fn format(device: &str, size: Bytes) -> Result<(), HarnessError> {
    let page = usize::try_from(PAGE_SIZE).unwrap_or(4096);
    let mut header = vec![0_u8; page];
    let pages = size.0 / PAGE_SIZE;
    let last = pages
        .checked_sub(1)
        .and_then(|last| u32::try_from(last).ok());
    let last = last.ok_or_else(|| {
        io("formatting swap on", device)(io::Error::other(format!("{pages} pages cannot be swap")))
    })?;
    header[1024..1028].copy_from_slice(&1_u32.to_le_bytes());
    header[1028..1032].copy_from_slice(&last.to_le_bytes());
    header[page - 10..].copy_from_slice(b"SWAPSPACE2");
    let mut file = File::options()
        .write(true)
        .open(device)
        .map_err(io("formatting swap on", device))?;
    file.write_all(&header)
        .and_then(|()| file.sync_all())
        .map_err(io("formatting swap on", device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let on = |device| Swap::on_disk(device, Bytes::from_mib(1), MachineFate::Continues);
        let why = on("/dev/no-such-device").unwrap_err().to_string();
        assert!(why.contains("/dev/no-such-device"), "{why}");
    }

    /// Creates a folder with parameter files of zswap, each with name and content.
    fn parameters(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, holds) in files {
            fs::write(folder.path().join(name), format!("{holds}\n")).unwrap();
        }
        folder
    }

    #[test]
    fn zswap_is_told_what_was_asked_for_and_believed_only_when_it_says_so() {
        let all = [("compressor", "lzo"), ("zpool", "zbud"), ("enabled", "N")];
        let old = parameters(&all);
        zswap_in(old.path(), "zstd", "zsmalloc").unwrap();
        for (name, holds) in [
            ("compressor", "zstd"),
            ("zpool", "zsmalloc"),
            ("enabled", "Y"),
        ] {
            let path = old.path().join(name);
            assert_eq!(fs::read_to_string(path).unwrap(), holds);
        }
        // A kernel without a choice of pools has only zsmalloc.
        let new = parameters(&[("compressor", "lzo"), ("enabled", "N")]);
        zswap_in(new.path(), "zstd", "zsmalloc").unwrap();
        assert!(!new.path().join("zpool").exists());
        // A parameter that can be neither written nor read (here because it is a folder) is reported by name.
        let stubborn = parameters(&all);
        let path = stubborn.path().join("compressor");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let why = zswap_in(stubborn.path(), "zstd", "zsmalloc")
            .unwrap_err()
            .to_string();
        assert!(why.contains("compressor") && why.contains("zstd"), "{why}");
        let none = Path::new("/sys/module/no-such-module/parameters");
        let why = zswap_in(none, "zstd", "zsmalloc").unwrap_err().to_string();
        assert!(why.contains("uses nothing"), "{why}");
    }

    #[test]
    fn what_zswap_does_beyond_caching_is_believed_only_when_it_says_so() {
        let folder = parameters(&[("shrinker_enabled", "N")]);
        let group = folder.path().join("group");
        fs::write(&group, "1\n").unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        zswap_reclaims_in(folder.path(), &group, false, true).unwrap();
        assert_eq!(
            (read("shrinker_enabled"), read("group")),
            ("N\n".to_owned(), "1\n".to_owned())
        );
        zswap_reclaims_in(folder.path(), &group, true, false).unwrap();
        assert_eq!(
            (read("shrinker_enabled"), read("group")),
            ("Y".to_owned(), "0".to_owned())
        );
        let none = folder.path().join("none");
        let why = zswap_reclaims_in(&none, &group, true, true)
            .unwrap_err()
            .to_string();
        assert!(why.contains("shrinker_enabled instead of Y"), "{why}");
    }

    #[test]
    fn a_zram_device_gets_its_attributes_in_the_order_of_the_kernel() {
        let zram = ZramDevice {
            recompress: Some(pagetide_record::Compressor::Zstd),
            limit: Some(Bytes::from_mib(4)),
            ..ZramDevice::default()
        };
        let text = |value: &str| value.to_owned();
        assert_eq!(
            zram_attributes(&zram, Some("/dev/nullb0")),
            [
                ("comp_algorithm", text("lz4")),
                ("recomp_algorithm", text("algo=zstd priority=1")),
                ("backing_dev", text("/dev/nullb0")),
                ("mem_limit", text("4194304")),
            ]
        );
        assert_eq!(zram_attributes(&ZramDevice::default(), None).len(), 1);
        assert_eq!(sysfs("/dev/zram1"), Path::new("/sys/block/zram1"));
    }

    #[test]
    fn the_header_is_what_the_kernel_looks_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        format(&path, Bytes::from_mib(1)).unwrap();
        let header = fs::read(&path).unwrap();
        assert_eq!(&header[4086..4096], b"SWAPSPACE2");
        assert_eq!(header[1028..1032], 255_u32.to_le_bytes());
    }
}
