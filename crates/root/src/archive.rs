//! Makes a root from a tar archive, plain or compressed.
//!
//! No name in the archive is used as a path on this machine: contents of files go into numbered files of a private
//! folder, and names only into the [`Tree`].

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use pagetide_quantity::Bytes;

use crate::error::{RootError, io};
use crate::image::MOST;
use crate::members;
use crate::oci::Layer;
use crate::path::RootPath;
use crate::tree::{Entry, Tree};

/// First bytes of an archive compressed by gzip or zstd. Sources: RFC 1952, RFC 8878.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

impl Tree {
    /// Adds the content of an archive; the bytes of its files go into the empty folder `spool`.
    pub fn archive(&mut self, path: &Path, spool: &Path) -> Result<(), RootError> {
        self.unpack(opened(path)?, path, spool, None)
    }

    /// Adds a layer of an image over the existing content; the bytes of its files go into the empty folder `spool`.
    pub(crate) fn layer(&mut self, path: &Path, spool: &Path) -> Result<(), RootError> {
        self.unpack(opened(path)?, path, spool, Some(Layer::default()))
    }

    /// Adds the content of Debian packages, given as one tar archive each, to a system with merged `/usr` (Debian 12
    /// and later). There `/bin`, `/lib` and so on are links into `/usr`, so files come to the same place, whichever
    /// path a package uses.
    pub fn packages(&mut self, archives: &[PathBuf], spool: &Path) -> Result<(), RootError> {
        if archives.is_empty() {
            return Ok(());
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            self.folder(&RootPath::new(&format!("/usr/{name}"), "")?)?;
            self.link(
                &RootPath::new(&format!("/{name}"), "")?,
                &format!("usr/{name}"),
            )?;
        }
        for (number, archive) in archives.iter().enumerate() {
            let own = spool.join(format!("package-{number}"));
            fs::create_dir(&own).map_err(io("making", &own))?;
            self.archive(archive, &own)?;
        }
        Ok(())
    }

    /// Adds the content of a tar stream; `name` is for messages. A `layer` also replaces and removes existing files.
    fn unpack(
        &mut self,
        reader: impl Read,
        name: &Path,
        spool: &Path,
        mut layer: Option<Layer>,
    ) -> Result<(), RootError> {
        // A name that occurs again replaces the file, but not the bytes already written for it.
        let mut written = 0_u64;
        members::each(reader, name, &mut |member| {
            let inside = inside(&member.name)?;
            if let Some(layer) = &mut layer
                && layer.admit(self, &inside, member.kind.is_dir())?
            {
                return Ok(());
            }
            if member.kind.is_dir() {
                self.folder(&inside)?;
            } else if member.kind.is_symlink() {
                self.link(&inside, &member.target)?;
            } else if member.kind.is_hard_link() {
                self.twin(&inside, &member.target)?;
            } else if member.is_file() {
                let kept = spool.join(member.number.to_string());
                self.room_for(member.size)?;
                written = written.saturating_add(member.size);
                if written > 2 * MOST.0 {
                    let size = Bytes(written);
                    return Err(RootError::TooLarge { size, most: MOST });
                }
                spool_file(member.content, &kept, name)?;
                self.file(&inside, &kept, member.executable)?;
            }
            // Devices are created by the guest, pipes by the program itself; other types of members are not files.
            Ok(())
        })
    }

    /// Fails if more than a guest can receive would be written, before it is written.
    fn room_for(&self, more: u64) -> Result<(), RootError> {
        let size = Bytes(self.size().0.saturating_add(more));
        if size > MOST {
            return Err(RootError::TooLarge { size, most: MOST });
        }
        Ok(())
    }

    /// Adds a hard link to an existing file.
    fn twin(&mut self, path: &RootPath, target: &str) -> Result<(), RootError> {
        let bad = || RootError::BadPath {
            path: target.to_owned(),
            why: "it is the target of a hard link, but no such file precedes the link in the archive",
        };
        let real = self.follow(&inside(target)?).ok_or_else(bad)?;
        match self.get(&real).cloned() {
            Some(entry @ Entry::File { .. }) => {
                self.place(path, entry)?;
                Ok(())
            }
            _ => Err(bad()),
        }
    }
}

/// A reader of an archive's uncompressed content.
pub(crate) fn opened(path: &Path) -> Result<Box<dyn Read>, RootError> {
    let file = File::open(path).map_err(io("reading", path))?;
    let mut start = Vec::new();
    (&file)
        .take(4)
        .read_to_end(&mut start)
        .map_err(io("reading", path))?;
    let file = File::open(path).map_err(io("reading", path))?;
    Ok(if start.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(file))
    } else if start.starts_with(ZSTD) {
        Box::new(zstd::stream::read::Decoder::new(file).map_err(io("reading", path))?)
    } else {
        Box::new(file)
    })
}

/// Writes the bytes of a file to a private file, which must not exist yet.
pub(crate) fn spool_file(
    content: &mut dyn Read,
    to: &PathBuf,
    name: &Path,
) -> Result<(), RootError> {
    let mut file = File::create_new(to).map_err(io("making", to))?;
    // The stated size of a sparse file is smaller than its real size.
    let copied =
        io::copy(&mut content.take(MOST.0 + 1), &mut file).map_err(io("unpacking", name))?;
    if copied > MOST.0 {
        let size = Bytes(copied);
        return Err(RootError::TooLarge { size, most: MOST });
    }
    Ok(())
}

/// Converts a name in an archive to a path inside. Every name is relative to the root, even if it begins with `/`.
fn inside(name: &str) -> Result<RootPath, RootError> {
    match name.trim_start_matches(['/', '.']) {
        // `./` is the root itself; a name such as `.profile` keeps its dot.
        "" if !name.contains("..") => RootPath::new("/", ""),
        _ => RootPath::new(name, ""),
    }
}
