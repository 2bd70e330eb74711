//! A root made of a tar archive, plain or compressed.
//!
//! No name of the archive is used on this machine: the bytes of its files go into numbered files of a folder of ours, and its names
//! only into the [`Tree`].

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

/// What an archive begins with that is compressed by gzip or zstd. Sources: RFC 1952, RFC 8878.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

impl Tree {
    /// Adds what an archive holds; the bytes of its files go into the empty folder `spool`.
    pub fn archive(&mut self, path: &Path, spool: &Path) -> Result<(), RootError> {
        self.unpack(opened(path)?, path, spool, None)
    }

    /// Lays over what is there what a layer of an image holds; the bytes of its files go into the empty folder `spool`.
    pub(crate) fn layer(&mut self, path: &Path, spool: &Path) -> Result<(), RootError> {
        self.unpack(opened(path)?, path, spool, Some(Layer::default()))
    }

    /// Adds what Debian packages hold, given as a tar archive each, as a system has it whose `/bin`, `/lib` and so on are links into
    /// `/usr` (the merged `/usr` of Debian 12 and later): there is then one place for each, whichever a package names.
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

    /// Adds what a tar stream holds; `name` is for messages, and what a `layer` holds replaces and removes what is there.
    fn unpack(
        &mut self,
        reader: impl Read,
        name: &Path,
        spool: &Path,
        mut layer: Option<Layer>,
    ) -> Result<(), RootError> {
        // A name that comes again replaces the file and not what was written for it.
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
            // Devices are made anew, pipes by the program itself; headers of other kinds say nothing of files.
            Ok(())
        })
    }

    /// Refuses more than can be handed to a guest, before it is written anywhere.
    fn room_for(&self, more: u64) -> Result<(), RootError> {
        let size = Bytes(self.size().0.saturating_add(more));
        if size > MOST {
            return Err(RootError::TooLarge { size, most: MOST });
        }
        Ok(())
    }

    /// Adds a second name of a file that is there.
    fn twin(&mut self, path: &RootPath, target: &str) -> Result<(), RootError> {
        let bad = || RootError::BadPath {
            path: target.to_owned(),
            why: "a hard link leads to it, and there is no such file before it in the archive",
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

/// A reader of what an archive holds, whatever compresses it.
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

/// Writes the bytes of a file to a file of ours, which must not be there yet.
pub(crate) fn spool_file(
    content: &mut dyn Read,
    to: &PathBuf,
    name: &Path,
) -> Result<(), RootError> {
    let mut file = File::create_new(to).map_err(io("making", to))?;
    // A file with holes says less of its size than it has.
    let copied =
        io::copy(&mut content.take(MOST.0 + 1), &mut file).map_err(io("unpacking", name))?;
    if copied > MOST.0 {
        let size = Bytes(copied);
        return Err(RootError::TooLarge { size, most: MOST });
    }
    Ok(())
}

/// A name in an archive as a path inside: names are below the root, whatever they begin with.
fn inside(name: &str) -> Result<RootPath, RootError> {
    match name.trim_start_matches(['/', '.']) {
        // `./` stands for the root itself; a name such as `.profile` keeps its dot.
        "" if !name.contains("..") => RootPath::new("/", ""),
        _ => RootPath::new(name, ""),
    }
}
