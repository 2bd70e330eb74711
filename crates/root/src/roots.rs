//! The cache of roots: each image is made once, and named by a digest of everything on which it depends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use pagetide_quantity::{Bytes, PAGE_SIZE};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::code::{self, CodeFile};
use crate::error::{RootError, io};
use crate::image;
use crate::reader::{self, ImageEntry};
use crate::tree::{Tree, digest_of, hex};

/// Time since its last use after which a root is removed from the cache.
const AGE_LIMIT: Duration = Duration::from_hours(30 * 24);
/// Name of the file with a root's image.
const IMAGE: &str = "image";
/// Name of the file with the list of a root's entries.
const LISTING: &str = "listing";
/// Name of the file with a root's metadata. It is written last, so its presence shows that the root is complete.
const NOTE: &str = "whole";

/// The roots in a cache folder.
#[derive(Clone, Debug)]
pub struct Roots {
    folder: PathBuf,
    /// Flag that is set when the user asks to stop.
    stop: Arc<AtomicBool>,
}

/// A root in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Name of the root: a digest of everything that determines the bytes of its image.
    pub digest: String,
    /// Path of the image, a sparse file.
    pub image: PathBuf,
    /// Size of the image in bytes.
    pub size: Bytes,
    /// SHA-256 of the image's bytes, in hexadecimal.
    sum: String,
}

/// Metadata of a complete root, stored beside the image.
#[derive(Serialize, Deserialize)]
struct Note {
    size: Bytes,
    sum: String,
}

impl Roots {
    /// Returns the cache of roots in the folder `cache`.
    pub fn of(cache: &Path) -> Self {
        Self {
            folder: cache.join("roots"),
            stop: Arc::default(),
        }
    }

    /// Sets the flag that stops the making of an image when it becomes true.
    #[must_use]
    pub fn stopping_by(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Returns the root for a tree, with `space` bytes for files that the program writes. If it is not in the cache,
    /// makes its image after a message to `say`.
    pub fn make(
        &self,
        tree: &Tree,
        space: Bytes,
        say: impl FnOnce(&str),
    ) -> Result<Root, RootError> {
        let listing = format!(
            "pagetide root 1\n{}\nspace {}\n{}",
            image::version()?,
            space.0,
            tree.listing()
        );
        let digest = hex(&Sha256::digest(&listing)[..16]);
        match self.get(&digest) {
            Err(RootError::Unknown { .. }) => {}
            other => return other,
        }
        fs::create_dir_all(&self.folder).map_err(io("making", &self.folder))?;
        self.sweep();
        let (size, _) = image::size(tree, space);
        let files = tree.size();
        say(&format!(
            "making the program's file system: {files} of files, {size} in all"
        ));
        let work = tempfile::Builder::new()
            .prefix(".making-")
            .tempdir_in(&self.folder)
            .map_err(io("making a folder in", &self.folder))?;
        let place = work.path().join("root");
        fs::create_dir(&place).map_err(io("making", &place))?;
        let image = place.join(IMAGE);
        let stop = || self.stop.load(Ordering::Relaxed);
        image::make(tree, space, work.path(), &image, &stop)?;
        let reader = File::open(&image).map_err(io("reading", &image))?;
        let (sum, size) = digest_of(&reader).map_err(io("reading", &image))?;
        reader.sync_all().map_err(io("writing", &image))?;
        let note = Note {
            size: Bytes(size),
            sum,
        };
        let write = |name: &str, bytes: &[u8]| {
            let path = place.join(name);
            fs::write(&path, bytes).map_err(io("writing", &path))
        };
        write(LISTING, listing.as_bytes())?;
        write(NOTE, &serde_json::to_vec(&note).unwrap_or_default())?;
        // If another process has made the same root first, its image is used.
        let _ = fs::rename(&place, self.folder.join(&digest));
        self.get(&digest)
    }

    /// Creates a temporary folder for unpacking; it is deleted when dropped.
    pub fn spool(&self) -> Result<tempfile::TempDir, RootError> {
        fs::create_dir_all(&self.folder).map_err(io("making", &self.folder))?;
        tempfile::Builder::new()
            .prefix(".unpacking-")
            .tempdir_in(&self.folder)
            .map_err(io("making a folder in", &self.folder))
    }

    /// Returns the root with this digest; fails if the cache does not have it.
    pub fn get(&self, digest: &str) -> Result<Root, RootError> {
        let unknown = || RootError::Unknown {
            digest: digest.to_owned(),
            cache: self.folder.clone(),
        };
        if digest.is_empty() || !digest.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        let folder = self.folder.join(digest);
        let note = fs::read(folder.join(NOTE)).map_err(|_| unknown())?;
        let note: Note = serde_json::from_slice(&note).map_err(|_| unknown())?;
        // Eviction uses the modification time of the note as the time of last use.
        if let Ok(file) = File::open(folder.join(NOTE)) {
            let _ = file.set_modified(SystemTime::now());
        }
        Ok(Root {
            digest: digest.to_owned(),
            image: folder.join(IMAGE),
            size: note.size,
            sum: note.sum,
        })
    }

    /// Removes roots that were not used for [`AGE_LIMIT`], and leftovers of killed processes of the same age.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let used = fs::metadata(path.join(NOTE))
                .or_else(|_| entry.metadata())
                .and_then(|metadata| metadata.modified());
            let age = used.ok().and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > AGE_LIMIT) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

impl Root {
    /// Verifies the image and opens it. If it is damaged, removes the root from the cache and fails.
    pub fn open(&self) -> Result<File, RootError> {
        let file = File::open(&self.image).map_err(io("opening", &self.image))?;
        let (sum, size) = digest_of(&file).map_err(io("reading", &self.image))?;
        if sum == self.sum && size == self.size.0 {
            return Ok(file);
        }
        if let Some(folder) = self.image.parent() {
            let _ = fs::remove_dir_all(folder);
        }
        Err(RootError::Damaged {
            digest: self.digest.clone(),
        })
    }

    /// Returns the number of bytes that the root's files occupy on tmpfs. The size of each file is rounded up to whole
    /// pages.
    pub fn in_memory(&self) -> Result<Bytes, RootError> {
        let path = self.image.with_file_name(LISTING);
        let listing = fs::read_to_string(&path).map_err(io("reading", &path))?;
        let size = |line: &str| {
            let mut words = line.split(' ');
            let is_file = matches!(words.next(), Some("file" | "program"));
            let size: u64 = words.nth(1).filter(|_| is_file)?.parse().ok()?;
            Some(size.next_multiple_of(PAGE_SIZE))
        };
        Ok(Bytes(listing.lines().filter_map(size).sum()))
    }

    /// Returns the executable code of all files in the root for x86-64. Files with identical code are listed once.
    /// Fails if the image is damaged.
    pub fn code(&self) -> Result<Vec<CodeFile>, RootError> {
        let image = self.open()?;
        let entries = self.entries(&image)?;
        code::files(&image, &entries).map_err(io("reading", &self.image))
    }

    /// Reads all entries of the opened image. Folders come before their content.
    pub fn entries(&self, image: &File) -> Result<Vec<ImageEntry>, RootError> {
        reader::entries(image).map_err(io("reading", &self.image))
    }
}
