//! Files that are either whole or not there, however the program ends.
//!
//! A file in the making has no name (`O_TMPFILE`), so that it vanishes with the process, whatever ends that. It is named
//! when it is whole. Where the file system has no such files, a `.part` beside the target is renamed instead, and a
//! process that is killed leaves that behind.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("writing {}", .path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// The system's reason.
    pub source: io::Error,
}

/// Has `fill` write the contents of the file. A regular file in its place is replaced at the end; what is no regular
/// file (a device, a pipe) is written to as it is.
pub fn write<T, E: From<WriteError>>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let wrong = |source| WriteError {
        path: path.to_owned(),
        source,
    };
    // A link is followed, as by everything that writes in place.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if target.exists() && !target.is_file() {
        let file = File::options().write(true).open(&target);
        let mut out = BufWriter::new(file.map_err(wrong)?);
        let filled = fill(&mut out)?;
        out.flush().map_err(wrong)?;
        return Ok(filled);
    }
    let part = Part::beside(&target).map_err(wrong)?;
    let mut out = BufWriter::new(&part.file);
    let filled = fill(&mut out)?;
    out.flush().map_err(wrong)?;
    drop(out);
    part.name(&target).map_err(wrong)?;
    Ok(filled)
}

/// A file in the making; dropped before it is named, it is gone.
struct Part {
    file: File,
    /// Its name, where the file system has no files without one.
    path: Option<PathBuf>,
}

impl Part {
    fn beside(target: &Path) -> io::Result<Self> {
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // The mode that `File::create` asks for; the user's mask takes from it.
        let mode = Mode::from_raw_mode(0o666);
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, mode) {
            Ok(file) => Ok(Self {
                file: file.into(),
                path: None,
            }),
            // Source: open(2), `O_TMPFILE`: what file systems and kernels answer that do not have it.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let path = part_of(target);
                Ok(Self {
                    file: File::create_new(&path)?,
                    path: Some(path),
                })
            }
            Err(why) => Err(why.into()),
        }
    }

    /// Gives it its name, in place of what has that now.
    fn name(mut self, target: &Path) -> io::Result<()> {
        if let Some(part) = &self.path {
            fs::rename(part, target)?;
            self.path = None;
            return Ok(());
        }
        match self.link(target) {
            Err(Errno::EXIST) => {}
            other => return Ok(other?),
        }
        // Nothing replaces a file by one without a name: it has one for this moment, and is whole.
        let part = part_of(target);
        self.link(&part)?;
        fs::rename(&part, target).inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
    }

    fn link(&self, name: &Path) -> rustix::io::Result<()> {
        // Source: open(2), `O_TMPFILE`, the way that needs no privilege.
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, own, CWD, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(part) = &self.path {
            let _ = fs::remove_file(part);
        }
    }
}

/// A name beside the target that is this process's own.
fn part_of(target: &Path) -> PathBuf {
    let mut part = target.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    part.into()
}
