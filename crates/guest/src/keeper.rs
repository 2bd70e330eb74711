//! The keeper: a process that makes zram recompress pages and write them back, as a user-space daemon does on phones.
//!
//! zram does neither by itself: a process must mark pages as idle and start the work. Source: kernel
//! `Documentation/admin-guide/blockdev/zram.rst`. Every [`INTERVAL`], the keeper handles two kinds of pages: those that
//! were not accessed since its previous round, and those that do not compress. As the device is configured, it writes
//! these pages to the backing device, and recompresses those that are still in memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use pagetide_harness::supervise;
use pagetide_record::swap::tiers::ZramDevice;

use crate::disk::child;
use crate::error::{GuestError, io};

/// Interval between two rounds of the keeper, in virtual time.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Starts the keeper of this zram device. `folder` is the sysfs folder of the device. Does nothing for a device with
/// neither writeback nor recompression. Fails if the kernel lacks what the device is to do.
pub fn start(folder: &Path, zram: &ZramDevice) -> Result<(), GuestError> {
    let mut steps: Vec<(&'static str, &'static str)> = Vec::new();
    if zram.writeback.is_some() {
        steps.extend([("writeback", "idle"), ("writeback", "huge")]);
    }
    if zram.recompress.is_some() {
        steps.extend([("recompress", "type=idle"), ("recompress", "type=huge")]);
    }
    if steps.is_empty() {
        return Ok(());
    }
    steps.push(("idle", "all"));
    let open = |(name, value): (&'static str, &'static str)| {
        let path = folder.join(name);
        let file = File::options().write(true).open(&path);
        file.map(|file| (file, value))
            .map_err(io("opening", path.display().to_string()))
    };
    let steps: Vec<(File, &str)> = steps.into_iter().map(open).collect::<Result<_, _>>()?;
    child(|| {
        supervise::lock_everything();
        loop {
            std::thread::sleep(INTERVAL);
            for (file, value) in &steps {
                // The kernel refuses if there is nothing to do, or no space on the backing device.
                let _ = file.write_at(value.as_bytes(), 0);
            }
        }
    })
    .map_err(io("starting", "the keeper of zram"))?;
    Ok(())
}
