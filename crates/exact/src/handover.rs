//! Passes the image of a program's root to a guest through shared memory. This memory holds the trace in observed
//! trials and is unused during a boot, so the guest's own memory is not reduced.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use pagetide_guest::files::{Entry, Kind};
use pagetide_quantity::Bytes;
use pagetide_root::{ImageEntry, ImageKind};

/// Number of bytes read from the image at once.
const CHUNK_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;

/// An image to pass to a guest, with the positions of its non-zero parts.
#[derive(Debug)]
pub struct Handover {
    image: File,
    /// Offset and length in bytes of each non-zero part of the image, in whole pages.
    pieces: Vec<(u64, u64)>,
}

impl Handover {
    /// Finds the non-zero parts of an image.
    pub fn of(image: File) -> io::Result<Self> {
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut at = 0;
        loop {
            let n = image.read_at(&mut buffer, at)?;
            if n == 0 {
                return Ok(Self { image, pieces });
            }
            // A short read ends within a page, which is counted as whole.
            let whole = n.next_multiple_of(PAGE_BYTES);
            buffer[n..whole].fill(0);
            for (page, from) in buffer[..whole]
                .chunks_exact(PAGE_BYTES)
                .zip((at..).step_by(PAGE_BYTES))
            {
                if page.iter().all(|byte| *byte == 0) {
                    continue;
                }
                match pieces.last_mut() {
                    Some((start, length)) if *start + *length == from => {
                        *length += PAGE_BYTES as u64;
                    }
                    _ => pieces.push((from, PAGE_BYTES as u64)),
                }
            }
            at += n as u64;
        }
    }

    /// Creates a value that passes only the contents of files, for a guest that creates the files itself. The returned
    /// list names the files in the order of their bytes.
    pub fn of_files(image: File, entries: Vec<ImageEntry>) -> (Self, Vec<Entry>) {
        let mut pieces = Vec::new();
        let mut list = Vec::new();
        for entry in entries {
            let kind = match entry.kind {
                ImageKind::Folder => Kind::Folder,
                ImageKind::Link(target) => Kind::Link(target),
                ImageKind::File { size, parts } => {
                    pieces.extend(parts.iter().map(|(_, from, length)| (*from, *length)));
                    let of_file = parts.iter().map(|(at, _, length)| (*at, *length));
                    Kind::File(size, of_file.collect())
                }
            };
            list.push(Entry {
                path: entry.path,
                mode: entry.mode,
                owner: entry.owner,
                kind,
            });
        }
        (Self { image, pieces }, list)
    }

    /// Returns the total size of all non-zero parts.
    pub fn size(&self) -> Bytes {
        Bytes(self.pieces.iter().map(|(_, length)| length).sum())
    }

    /// Returns the table of the non-zero parts, in the guest's format.
    pub fn table(&self) -> Vec<u8> {
        let numbers = self.pieces.iter().flat_map(|(at, length)| [*at, *length]);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    /// Writes the non-zero parts into a file, one directly after another, from offset `to` on.
    pub fn write(&self, file: &File, mut to: u64) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK_BYTES];
        for (from, length) in &self.pieces {
            let (mut from, mut left) = (*from, *length);
            while left > 0 {
                let most = usize::try_from(left)
                    .unwrap_or(CHUNK_BYTES)
                    .min(CHUNK_BYTES);
                let n = self.image.read_at(&mut buffer[..most], from)?;
                if n == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                file.write_all_at(&buffer[..n], to)?;
                from += n as u64;
                to += n as u64;
                left -= n as u64;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_zero_is_handed_over_in_whole_pages_and_in_order() {
        let image = tempfile::tempfile().unwrap();
        image.set_len(3 << 20).unwrap();
        image.write_all_at(b"one", 4096).unwrap();
        image.write_all_at(&[7; 9000], (1 << 20) - 4096).unwrap();
        image.write_all_at(b"end", (3 << 20) - 3).unwrap();
        let handover = Handover::of(image).unwrap();
        let near = (1 << 20) - 4096;
        let last = (3 << 20) - 4096;
        assert_eq!(
            handover.pieces,
            [(4096, 4096), (near, 3 * 4096), (last, 4096)]
        );
        assert_eq!(handover.size(), Bytes(5 * 4096));
        assert_eq!(handover.table().len(), 48);
        let file = tempfile::tempfile().unwrap();
        handover.write(&file, 100).unwrap();
        let mut bytes = vec![0; 5 * 4096];
        file.read_exact_at(&mut bytes, 100).unwrap();
        assert_eq!(&bytes[..4], b"one\0");
        assert!(bytes[4096..4096 + 9000].iter().all(|byte| *byte == 7));
        assert!(bytes.ends_with(b"end"));
    }
}
