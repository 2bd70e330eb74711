//! Adds the content of a tar archive, plain or compressed, to a root.
//!
//! No name in the archive is used as a path on this machine. The contents of files are written to numbered files of a
//! private folder, and names are only added to the [`Tree`].

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;

use crate::error::{RootError, io};
use crate::image::MAX_SIZE;
use crate::members::{self, opened, spool_file};
use crate::oci::Layer;
use crate::path::RootPath;
use crate::tree::{Entry, Tree};

impl Tree {
    /// Adds the content of the archive at `path`. The contents of its files are written to the empty folder `spool`.
    /// Fails if a path in it is not allowed, or if a limit is exceeded.
    pub fn archive(&mut self, path: &Path, spool: &Path) -> Result<(), RootError> {
        self.unpack(opened(path)?, path, spool, None)
    }

    /// Adds a layer of a container image over the existing content. The contents of its files are written to the empty
    /// folder `spool`.
    pub(crate) fn layer(&mut self, path: &Path, spool: &Path) -> Result<(), RootError> {
        self.unpack(opened(path)?, path, spool, Some(Layer::default()))
    }

    /// Adds the content of Debian packages, given as one tar archive each, to a system with merged `/usr` (Debian 12
    /// and later). In such a system, `/bin`, `/lib` and others are links into `/usr`, so each file is placed once,
    /// whichever of the two paths a package uses.
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

    /// Adds the content of a tar stream; `name` is the archive's name in messages. If `layer` is given, names in the
    /// stream may also replace and remove existing files.
    fn unpack(
        &mut self,
        reader: impl Read,
        name: &Path,
        spool: &Path,
        mut layer: Option<Layer>,
    ) -> Result<(), RootError> {
        // If a name occurs again, its file is replaced, but the bytes already written for the name still count.
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
                if written > 2 * MAX_SIZE.0 {
                    let size = Bytes(written);
                    return Err(RootError::TooLarge {
                        size,
                        most: MAX_SIZE,
                    });
                }
                spool_file(member.content, &kept, name)?;
                self.file(&inside, &kept, member.executable)?;
            }
            // Devices are created by the guest, and pipes by the program itself. Other types of members are not files.
            Ok(())
        })
    }

    /// Fails if the files would exceed the size that a guest can receive after adding `more` bytes.
    fn room_for(&self, more: u64) -> Result<(), RootError> {
        let size = Bytes(self.size().0.saturating_add(more));
        if size > MAX_SIZE {
            return Err(RootError::TooLarge {
                size,
                most: MAX_SIZE,
            });
        }
        Ok(())
    }

    /// Adds a hard link at `path` to the existing file `target`. Fails if there is no such file.
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

/// Converts a name in an archive to a path inside the root. Names that begin with `/` are relative to the root too.
/// Fails if the path is not allowed.
fn inside(name: &str) -> Result<RootPath, RootError> {
    match name.trim_start_matches(['/', '.']) {
        // `./` is the root itself. A name such as `.profile` keeps its dot.
        "" if !name.contains("..") => RootPath::new("/", ""),
        _ => RootPath::new(name, ""),
    }
}
