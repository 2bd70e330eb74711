//! Caches the list of a kernel's functions with the snapshot of a guest. The list gives names to addresses in stacks.
//!
//! The list is the same after every observed trial of a guest, and the emulated kernel takes a second to produce it. So
//! the first such trial of a snapshot stores it, and later trials end without it. If the file cannot be read, the next
//! trial writes it again.

use std::fs::Permissions;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pagetide_outside::{FileOrigin, open};

/// Name of the file with the list in a snapshot's folder. It consists of one zstd frame with a checksum.
pub const FILE: &str = "functions";
/// Maximum size of the uncompressed list, in bytes; Debian's 6.12 has 6 MB.
const MAX_BYTES: u64 = 256 << 20;
/// Level of zstd compression. Lines are similar, so the fastest level achieves most of the reduction.
const LEVEL: i32 = 1;

/// Reads the list of functions from a snapshot's folder; `None` if it is missing or damaged.
pub fn kept(folder: &Path) -> Option<Vec<u8>> {
    let file = open(&folder.join(FILE), FileOrigin::Own).ok()?;
    let mut list = Vec::new();
    let mut decoder = zstd::Decoder::with_buffer(BufReader::new(file))
        .ok()?
        .single_frame();
    // Reads one byte more than the limit, to detect a list that is too long.
    let limit = MAX_BYTES.saturating_add(1);
    decoder.by_ref().take(limit).read_to_end(&mut list).ok()?;
    (list.len() as u64 <= MAX_BYTES).then_some(list)
}

/// Stores the list of functions in a snapshot's folder. Concurrent readers see the complete file or none.
pub fn keep(folder: &Path, list: &[u8]) -> io::Result<()> {
    // The file gets the same permissions as the snapshot's other files.
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)?;
    let mut encoder = zstd::Encoder::new(&mut file, LEVEL)?;
    encoder.include_checksum(true)?;
    io::copy(&mut &list[..], &mut encoder)?;
    encoder.finish()?;
    file.persist(folder.join(FILE))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_list_is_kept_whole_and_one_that_is_cut_or_altered_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kept(folder.path()), None);
        let list = b"ffffffff81000000 T _stext\n".repeat(400);
        keep(folder.path(), b"").unwrap();
        assert_eq!(kept(folder.path()), Some(Vec::new()));
        keep(folder.path(), &list).unwrap();
        assert_eq!(kept(folder.path()).unwrap(), list);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let path = folder.path().join(FILE);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(kept(folder.path()), None, "{length}");
        }
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[place] ^= 1 << bit;
                fs::write(&path, bytes).unwrap();
                let found = kept(folder.path());
                assert!(found.is_none_or(|found| found == list), "{place} {bit}");
            }
        }
    }
}
