//! Sets owners and times in an image. `mke2fs` copies owners and times of the files on this machine, which would differ
//! between machines.
//!
//! Format: Linux `Documentation/filesystems/ext4/`, super block, group descriptors and inodes. The image has no
//! checksums.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Time of every file in an image, in seconds since 1970: 2026-01-01, when the guest's clock begins.
pub(crate) const EPOCH_SECONDS: u32 = 1_767_225_600;

const MAGIC: u16 = 0xef53;
/// Size in bytes of a group descriptor without the 64bit feature.
pub(crate) const DESCRIPTOR_BYTES: usize = 32;

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..at + 2)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Sets the owner and the times of every inode in use. `owner` converts the modification time found in an inode to the
/// ID of its user and group. Fails if the image has unexpected features.
pub(crate) fn settle(image: &File, owner: impl Fn(u32) -> u32) -> io::Result<()> {
    let mut head = [0; 1024];
    image.read_exact_at(&mut head, 1024)?;
    if u16_at(&head, 0x38) != MAGIC {
        return Err(io::Error::other("there is no super block"));
    }
    let block = 1024_u64 << u32_at(&head, 0x18);
    let blocks = u32_at(&head, 0x4);
    let per_group = u32_at(&head, 0x20).max(1);
    let inodes = u32_at(&head, 0x28) as usize;
    let size = usize::from(u16_at(&head, 0x58));
    // Fails on features that would move or protect the fields written here: 64bit and checksums.
    let (incompat, ro_compat) = (u32_at(&head, 0x60), u32_at(&head, 0x64));
    if incompat & 0x80 != 0 || ro_compat & 0x400 != 0 || size < 128 {
        return Err(io::Error::other("its features are not those asked for"));
    }
    let groups = blocks.div_ceil(per_group) as usize;
    let first = u64::from(u32_at(&head, 0x14)) + 1;
    let mut descriptors = vec![0; groups * DESCRIPTOR_BYTES];
    image.read_exact_at(&mut descriptors, first * block)?;
    for descriptor in descriptors.chunks_exact(DESCRIPTOR_BYTES) {
        let at = u64::from(u32_at(descriptor, 0x8)) * block;
        let mut table = vec![0; inodes * size];
        image.read_exact_at(&mut table, at)?;
        for inode in table.chunks_exact_mut(size) {
            if u16_at(inode, 0) != 0 {
                one(inode, &owner);
            }
        }
        image.write_all_at(&table, at)?;
    }
    Ok(())
}

/// Sets the owner and the times of one inode.
fn one(inode: &mut [u8], owner: &impl Fn(u32) -> u32) {
    let id = owner(u32_at(inode, 0x10)).to_le_bytes();
    // User id and group id, low and high halves.
    put(inode, 0x2, &id[..2]);
    put(inode, 0x18, &id[..2]);
    put(inode, 0x78, &id[2..]);
    put(inode, 0x7a, &id[2..]);
    // Access time, inode change time and modification time.
    for at in [0x8, 0xc, 0x10] {
        put(inode, at, &EPOCH_SECONDS.to_le_bytes());
    }
    // In inodes that are large enough: the fractions of these times, and the creation time with its fraction.
    if inode.len() > 128 && u16_at(inode, 0x80) >= 24 {
        for at in [0x84, 0x88, 0x8c, 0x94] {
            put(inode, at, &[0; 4]);
        }
        put(inode, 0x90, &EPOCH_SECONDS.to_le_bytes());
    }
}
