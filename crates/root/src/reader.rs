//! Reads names, owners, and positions of the files' bytes from an image, for a guest that uses another file system.
//!
//! Format: Linux `Documentation/filesystems/ext4/`. Supports only the features used by [`crate::image`]: blocks of 4
//! KiB, extents, linear folders (blocks of an index read as empty), and no checksums.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::inodes::{DESCRIPTOR_BYTES, u16_at, u32_at};
use crate::path::MAX_DEPTH;

/// Size of a block in bytes.
const BLOCK: u64 = 4096;
/// Inode number of the root folder.
const TOP: u32 = 2;
/// Name of the folder that `mke2fs` creates for repairs; it is left out.
const LOST: &[u8] = b"lost+found";
/// Bits of an inode's mode that state the inode's type.
const KIND: u16 = 0xf000;
/// Type bits of a folder.
const FOLDER: u16 = 0x4000;
/// Type bits of a symbolic link.
const LINK: u16 = 0xa000;
/// Type bits of a regular file.
const PLAIN: u16 = 0x8000;
/// Magic number of a node of an extent tree.
const EXTENTS: u16 = 0xf30a;

/// A folder, link or file in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageEntry {
    /// Path inside the root; `/` for the root folder.
    pub path: String,
    /// Permission bits of the entry.
    pub mode: u32,
    /// ID of the user and of the group that own the entry.
    pub owner: u32,
    /// Type of the entry, with its content.
    pub kind: ImageKind,
}

/// Type of an entry of an image, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// A folder.
    Folder,
    /// A symbolic link, with its target.
    Link(String),
    /// A regular file.
    File {
        /// Size of the file in bytes.
        size: u64,
        /// Allocated parts of the file: offset in the file, offset in the image, and length, in bytes. All are
        /// multiples of the block size.
        parts: Vec<(u64, u64, u64)>,
    },
}

/// Reads an image and collects its entries.
struct Reader<'a> {
    image: &'a File,
    inodes_per_group: u32,
    inode_bytes: u64,
    descriptors: Vec<u8>,
    found: Vec<ImageEntry>,
}

fn odd(why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the image is not as it was made: {why}"),
    )
}

/// Reads all entries of an image. Folders come before their content. Fails if the image was not made by this crate, or
/// has folders more than 64 deep.
pub fn entries(image: &File) -> io::Result<Vec<ImageEntry>> {
    let mut head = [0; 1024];
    image.read_exact_at(&mut head, 1024)?;
    if u16_at(&head, 0x38) != 0xef53 || u32_at(&head, 0x18) != 2 {
        return Err(odd("there is no super block"));
    }
    let groups = u32_at(&head, 0x4).div_ceil(u32_at(&head, 0x20).max(1));
    let mut descriptors = vec![0; groups as usize * DESCRIPTOR_BYTES];
    image.read_exact_at(&mut descriptors, BLOCK)?;
    let mut reader = Reader {
        image,
        inodes_per_group: u32_at(&head, 0x28).max(1),
        inode_bytes: u64::from(u16_at(&head, 0x58)),
        descriptors,
        found: Vec::new(),
    };
    reader.name("/", TOP, 0)?;
    Ok(reader.found)
}

impl Reader<'_> {
    /// Returns the bytes of the inode with this number.
    fn inode(&self, number: u32) -> io::Result<[u8; 128]> {
        let index = number.checked_sub(1).ok_or_else(|| odd("inode 0"))?;
        let group = (index / self.inodes_per_group) as usize;
        let at = group * DESCRIPTOR_BYTES + 0x8;
        let table = u64::from(u32_at(&self.descriptors, at));
        let place = u64::from(index % self.inodes_per_group) * self.inode_bytes;
        let mut inode = [0; 128];
        self.image
            .read_exact_at(&mut inode, table * BLOCK + place)?;
        Ok(inode)
    }

    /// Adds the entry of an inode at `path`, and the entries below it if it is a folder.
    fn name(&mut self, path: &str, number: u32, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(odd("its folders are too deep"));
        }
        let inode = self.inode(number)?;
        let mode = u16_at(&inode, 0);
        let owner = u32::from(u16_at(&inode, 0x2)) | u32::from(u16_at(&inode, 0x78)) << 16;
        let size = u64::from(u32_at(&inode, 0x4)) | u64::from(u32_at(&inode, 0x6c)) << 32;
        let kind = match mode & KIND {
            FOLDER => ImageKind::Folder,
            LINK => ImageKind::Link(self.link(&inode, size)?),
            PLAIN => {
                let mut parts = Vec::new();
                self.extents(&inode[0x28..0x64], &mut parts, 0)?;
                let end = size.next_multiple_of(BLOCK);
                // Blocks beyond the file's end would be preallocated; these images have none.
                parts.retain(|(at, _, length)| at + length <= end);
                ImageKind::File { size, parts }
            }
            _ => return Err(odd("a file of another kind")),
        };
        let is_folder = kind == ImageKind::Folder;
        self.found.push(ImageEntry {
            path: path.to_owned(),
            mode: u32::from(mode & !KIND),
            owner,
            kind,
        });
        if !is_folder {
            return Ok(());
        }
        for (name, number) in self.folder(&inode)? {
            let name = String::from_utf8(name).map_err(|_| odd("a name that is not UTF-8"))?;
            let inside = format!("{}/{name}", path.trim_end_matches('/'));
            self.name(&inside, number, depth + 1)?;
        }
        Ok(())
    }

    fn link(&self, inode: &[u8], size: u64) -> io::Result<String> {
        let length = usize::try_from(size).map_err(|_| odd("a link too long"))?;
        // A short target is stored in the inode itself, which then has no extents.
        let bytes = if length < 60 {
            inode[0x28..0x28 + length].to_vec()
        } else {
            let mut parts = Vec::new();
            self.extents(&inode[0x28..0x64], &mut parts, 0)?;
            let (_, at, _) = parts.first().ok_or_else(|| odd("an empty link"))?;
            let mut bytes = vec![0; length.min(4096)];
            self.image.read_exact_at(&mut bytes, *at)?;
            bytes
        };
        String::from_utf8(bytes).map_err(|_| odd("a link that is not UTF-8"))
    }

    /// Returns the names in a folder with their inode numbers, sorted by name.
    fn folder(&self, inode: &[u8]) -> io::Result<Vec<(Vec<u8>, u32)>> {
        let mut parts = Vec::new();
        self.extents(&inode[0x28..0x64], &mut parts, 0)?;
        let mut names = Vec::new();
        let mut block = vec![0; 4096];
        for (_, from, length) in parts {
            for at in (from..from + length).step_by(4096) {
                self.image.read_exact_at(&mut block, at)?;
                let mut place = 0;
                while place + 8 <= block.len() {
                    let step = usize::from(u16_at(&block, place + 4));
                    let number = u32_at(&block, place);
                    let length = usize::from(block[place + 6]);
                    if step < 8 || place + 8 + length > block.len() {
                        return Err(odd("a folder's entry"));
                    }
                    let name = &block[place + 8..place + 8 + length];
                    if number != 0 && ![b".".as_slice(), b"..", LOST].contains(&name) {
                        names.push((name.to_vec(), number));
                    }
                    place += step;
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// Adds the extents of a node and of its children to a list: offset in the file, offset in the image, and length,
    /// in bytes.
    fn extents(
        &self,
        node: &[u8],
        parts: &mut Vec<(u64, u64, u64)>,
        level: usize,
    ) -> io::Result<()> {
        if u16_at(node, 0) != EXTENTS || level > 5 {
            return Err(odd("a tree of extents"));
        }
        let (count, depth) = (usize::from(u16_at(node, 2)), u16_at(node, 6));
        for entry in node[12..].chunks_exact(12).take(count) {
            if depth == 0 {
                let length = u64::from(u16_at(entry, 4));
                let start = u64::from(u32_at(entry, 8)) | u64::from(u16_at(entry, 6)) << 32;
                // A larger length marks blocks that are allocated but uninitialized.
                if length <= 0x8000 {
                    let at = u64::from(u32_at(entry, 0)) * BLOCK;
                    parts.push((at, start * BLOCK, length * BLOCK));
                }
            } else {
                let below = u64::from(u32_at(entry, 4)) | u64::from(u16_at(entry, 8)) << 32;
                let mut block = vec![0; 4096];
                self.image.read_exact_at(&mut block, below * BLOCK)?;
                self.extents(&block, parts, level + 1)?;
            }
        }
        Ok(())
    }
}
