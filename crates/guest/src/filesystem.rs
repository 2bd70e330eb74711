//! The file system on a simulated disk, for scenarios that need files.
//!
//! The controller creates it, because the guest has no `mke2fs`, and sends the pieces that are not zero. The rest of
//! the device is already zero.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use pagetide_harness::swap::present;
use pagetide_quantity::Bytes;

use crate::error::{GuestError, io};
use crate::mount::mount;
use crate::spec::MOUNT_POINT;

/// Path, in the initial file system, of the pieces of the image that are not zero. For each: offset u64, length u64,
/// bytes; little endian.
pub const PIECES: &str = "/filesystem.pieces";

/// Writes the image's pieces to the device and mounts the file system. All pages of the device must already be
/// allocated.
pub fn prepare(device: &str, size: Bytes) -> Result<(), GuestError> {
    prepare_at(device, size, PIECES, MOUNT_POINT)
}

/// Writes the pieces in the file `image` to a device of `size` bytes, deletes `image`, and mounts the file system at
/// `folder`. All pages of the device must already be allocated. Fails if the pieces do not fit on the device.
pub fn prepare_at(device: &str, size: Bytes, image: &str, folder: &str) -> Result<(), GuestError> {
    present(device)?;
    let fault = |e| io("writing the file system to", device)(e);
    let mut pieces = File::open(image).map_err(io("opening", image))?;
    let disk = File::options().write(true).open(device).map_err(fault)?;
    let mut head = [0_u8; 16];
    let mut buffer = Vec::new();
    while pieces.read_exact(&mut head).is_ok() {
        let (offset, length) = head.split_at(8);
        let offset = u64::from_le_bytes(offset.try_into().unwrap_or_default());
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
        buffer.clear();
        (&mut pieces)
            .take(length)
            .read_to_end(&mut buffer)
            .map_err(fault)?;
        if buffer.len() as u64 != length || offset.saturating_add(length) > size.0 {
            return Err(fault(io::Error::other("its pieces do not fit")));
        }
        disk.write_all_at(&buffer, offset).map_err(fault)?;
    }
    disk.sync_all().map_err(fault)?;
    drop(disk);
    let _ = fs::remove_file(image);
    mount(device, folder, "ext4", "")
}
