//! Writes files so that a killed process never leaves an incomplete one: the target stays as it was until the new file
//! is complete.
//!
//! A file being written has no name (`O_TMPFILE`), so the kernel removes it if the process dies. It gets its name when
//! it is complete. If the file system does not support this, a `.part` file next to the target is renamed instead; a
//! killed process leaves this `.part` file in place.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// Error of writing a file outside the store.
#[derive(Debug, thiserror::Error)]
#[error("writing {}", .path.display())]
pub struct WriteError {
    /// Path of the file that was to be written.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

/// Writes a file whose contents `fill` provides, and returns its result. An existing regular file is replaced once the
/// new one is complete; if `fill` fails, it is kept. Other files (devices, pipes) are written to directly.
pub fn write<T, E: From<WriteError>>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let wrong = |source| WriteError {
        path: path.to_owned(),
        source,
    };
    // Symbolic links are followed, as when writing in place.
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

/// A file being written. If dropped before [`Self::name`] is called, the file is deleted.
struct Part {
    file: File,
    /// Path of the file; `None` if the file has no name yet.
    path: Option<PathBuf>,
}

impl Part {
    fn beside(target: &Path) -> io::Result<Self> {
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // The mode that `File::create` uses; the umask applies.
        let mode = Mode::from_raw_mode(0o666);
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, mode) {
            Ok(file) => Ok(Self {
                file: file.into(),
                path: None,
            }),
            // Errors of file systems and kernels without support, see open(2), `O_TMPFILE`.
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

    /// Gives the file its final name, replacing an existing file.
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
        // A file without a name cannot replace another. It gets a temporary name first; it is complete by then.
        let part = part_of(target);
        self.link(&part)?;
        fs::rename(&part, target).inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
    }

    fn link(&self, name: &Path) -> rustix::io::Result<()> {
        // The method in open(2), `O_TMPFILE`, that needs no privileges.
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

/// Returns a path next to the target that no other process uses: the target's name with `.PID.part` appended.
fn part_of(target: &Path) -> PathBuf {
    let mut part = target.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    part.into()
}
