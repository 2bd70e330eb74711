//! The seal of a snapshot: sizes and hashes of the snapshot's files, written when the snapshot is made and checked
//! before it is used.
//!
//! A flipped bit in a guest's memory gives a valid trial with other results, so no snapshot is used unverified. Each
//! file is hashed in pieces on all processors, and a file's hash is the hash of its pieces' hashes. Holes are not read.
//! A file verified by this process is not verified again while the system reports the same, unchanged file
//! ([`Identity`]).

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use pagetide_outside::{FileOrigin, open, read};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Size in bytes of the pieces in which a file is hashed.
const PIECE_BYTES: u64 = 1 << 20;

/// Maximum size of a seal's file in bytes.
const MAX_SEAL_BYTES: u64 = 1 << 20;

/// Size in bytes and hash of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    bytes: u64,
    hash: String,
}

/// Sizes and hashes of the files of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// Name of the snapshot.
    key: String,
    files: BTreeMap<String, Sum>,
}

impl Seal {
    /// Computes the seal of the files in `folder` with these names.
    pub fn of(key: &str, folder: &Path, names: &[impl AsRef<str>]) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for name in names.iter().map(AsRef::as_ref) {
            let file = File::open(folder.join(name))?;
            let bytes = file.metadata()?.len();
            let hash = hash(&file, bytes)?;
            files.insert(name.to_owned(), Sum { bytes, hash });
        }
        Ok(Self {
            key: key.to_owned(),
            files,
        })
    }

    /// Writes the seal to a file at `path`.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_vec_pretty(self)?)
    }

    /// Reads the seal at `path` and checks the files in its folder that have these names. The error says that the seal
    /// cannot be used, or names the first file that differs and how it differs.
    pub fn check(path: &Path, key: &str, names: &[impl AsRef<str>]) -> Result<(), String> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let seal = read(path, FileOrigin::Own, MAX_SEAL_BYTES)
            .ok()
            .and_then(|text| serde_json::from_slice::<Self>(&text).ok())
            .filter(|seal| seal.key == key)
            .ok_or("its seal cannot be read")?;
        let mut opened = Vec::new();
        // Sizes are checked first, because that is fast.
        for name in names.iter().map(AsRef::as_ref) {
            let sum = seal.files.get(name).ok_or("its seal is not whole")?;
            let file = open(&folder.join(name), FileOrigin::Own);
            let file = file.map_err(|why| format!("{name}: {why}"))?;
            let bytes = file.metadata().map_or(0, |data| data.len());
            if bytes != sum.bytes {
                return Err(format!("{name} has {bytes} bytes of {}", sum.bytes));
            }
            opened.push((name, sum, file));
        }
        for (name, sum, file) in opened {
            let found = hash(&file, sum.bytes).map_err(|why| format!("{name}: {why}"))?;
            if found != sum.hash {
                return Err(format!("{name} is not what was written"));
            }
        }
        Ok(())
    }
}

/// Attributes of a file by which a change is detected: device, inode, size, and times of modification and status
/// change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity([i64; 7]);

impl Identity {
    /// Reads the attributes of the file at `path`.
    pub fn of(path: &Path) -> io::Result<Self> {
        let data: Metadata = fs::metadata(path)?;
        Ok(Self([
            data.dev().cast_signed(),
            data.ino().cast_signed(),
            data.size().cast_signed(),
            data.mtime(),
            data.mtime_nsec(),
            data.ctime(),
            data.ctime_nsec(),
        ]))
    }
}

/// Returns the hash of the first `bytes` bytes of a file.
fn hash(file: &File, bytes: u64) -> io::Result<String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let pieces = bytes.div_ceil(PIECE_BYTES);
    // Each of n threads takes every n-th piece, because data is not evenly distributed in the file.
    let share = |first: u64| -> io::Result<Vec<blake3::Hash>> {
        let mut buffer = Vec::new();
        let step = usize::try_from(threads).unwrap_or(1);
        (first..pieces)
            .step_by(step)
            .map(|piece| hash_piece(file, piece * PIECE_BYTES, bytes, &mut buffer))
            .collect()
    };
    let shares = std::thread::scope(|scope| {
        let share = &share;
        let others: Vec<_> = (1..threads)
            .map(|first| scope.spawn(move || share(first)))
            .collect();
        let mut shares = vec![share(0)?];
        for other in others {
            shares.push(
                other
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))?,
            );
        }
        Ok::<_, io::Error>(shares)
    })?;
    let mut whole = blake3::Hasher::new();
    let mut shares: Vec<_> = shares.iter().map(|share| share.iter()).collect();
    'pieces: loop {
        for share in &mut shares {
            let Some(piece) = share.next() else {
                break 'pieces;
            };
            whole.update(piece.as_bytes());
        }
    }
    Ok(whole.finalize().to_hex().to_string())
}

/// Returns the hash of the piece of a file that begins at byte offset `at`.
fn hash_piece(file: &File, at: u64, bytes: u64, buffer: &mut Vec<u8>) -> io::Result<blake3::Hash> {
    let length = (bytes - at).min(PIECE_BYTES);
    buffer.resize(usize::try_from(length).unwrap_or_default(), 0);
    if is_hole(file, at, at + length) {
        buffer.fill(0);
    } else {
        file.read_exact_at(buffer, at)?;
    }
    Ok(blake3::hash(buffer))
}

/// Returns true if the file has only a hole between these byte offsets. Returns false if the file system does not
/// report holes.
fn is_hole(file: &File, from: u64, to: u64) -> bool {
    match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(data) => data >= to,
        // There is no data up to the end of the file.
        Err(Errno::NXIO) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["ram", "state"];

    /// Creates a folder with a sealed, sparse file `ram` of five and a half pieces, three of which are holes.
    fn sealed() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let ram = File::create(dir.path().join("ram")).unwrap();
        ram.set_len(5 * PIECE_BYTES + PIECE_BYTES / 2).unwrap();
        ram.write_all_at(b"low", 100).unwrap();
        ram.write_all_at(b"high", 4 * PIECE_BYTES + 7).unwrap();
        fs::write(dir.path().join("state"), vec![3; 300_000]).unwrap();
        let seal = Seal::of("key", dir.path(), &NAMES).unwrap();
        seal.write(&dir.path().join("whole")).unwrap();
        dir
    }

    fn check(dir: &tempfile::TempDir) -> Result<(), String> {
        Seal::check(&dir.path().join("whole"), "key", &NAMES)
    }

    #[test]
    fn one_flipped_bit_anywhere_is_found_and_its_file_named() {
        let dir = sealed();
        assert_eq!(check(&dir), Ok(()));
        for (name, at) in [
            ("ram", 101),
            // Positions in the middle of a hole, next to data, and in the last byte.
            ("ram", 2 * PIECE_BYTES + 5),
            ("ram", 4 * PIECE_BYTES),
            ("ram", 5 * PIECE_BYTES + PIECE_BYTES / 2 - 1),
            ("state", 0),
            ("state", 299_999),
        ] {
            let path = dir.path().join(name);
            let file = File::options().read(true).write(true).open(path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 1], at).unwrap();
            let why = check(&dir).unwrap_err();
            assert!(why.starts_with(name), "{why}");
            file.write_all_at(&byte, at).unwrap();
            assert_eq!(
                check(&dir),
                Ok(()),
                "zeros written into a hole are as good as the hole"
            );
        }
    }

    #[test]
    fn a_cut_or_lost_file_and_a_damaged_seal_are_found() {
        let dir = sealed();
        let state = File::options()
            .write(true)
            .open(dir.path().join("state"))
            .unwrap();
        state.set_len(299_999).unwrap();
        assert_eq!(check(&dir).unwrap_err(), "state has 299999 bytes of 300000");
        fs::remove_file(dir.path().join("state")).unwrap();
        assert!(check(&dir).unwrap_err().starts_with("state: "));
        for at in 0..100 {
            let dir = sealed();
            let path = dir.path().join("whole");
            let mut text = fs::read(&path).unwrap();
            text[at] ^= 1;
            fs::write(&path, &text).unwrap();
            // A space that becomes an exclamation mark is invalid JSON, and a changed digit is a wrong hash.
            assert!(check(&dir).is_err(), "{}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn the_hash_of_a_file_does_not_depend_on_how_it_is_stored() {
        let dir = tempfile::tempdir().unwrap();
        let (sparse, dense) = (dir.path().join("sparse"), dir.path().join("dense"));
        File::create(&sparse)
            .unwrap()
            .set_len(3 * PIECE_BYTES)
            .unwrap();
        fs::write(&dense, vec![0; 3 << 20]).unwrap();
        let of = |path: &Path| hash(&File::open(path).unwrap(), 3 * PIECE_BYTES).unwrap();
        assert_eq!(of(&sparse), of(&dense));
    }
}
