//! Ways in which a user program can copy a file.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use pagetide_quantity::Pages;

use crate::error::Stop;
use crate::mapping::Mapping;
use crate::number;
use crate::page::PAGE;

/// A way to copy a file, as the scenario `filecopy` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Method {
    /// Name of the method in kebab case.
    pub name: &'static str,
    /// The kernel feature that the method needs. Some kernels do not have it.
    pub feature: &'static str,
    how: CopyWay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyWay {
    ReadWrite { advice: bool },
    Mapped { advice: Option<libc::c_int> },
    MapWrite { advice: Option<libc::c_int> },
    DontNeedBehind,
    ColdBehind,
    CopyFileRange,
    SendFile,
    Splice,
    Direct,
    DontCache,
    Ring,
}

/// Result of copying a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CopyEnd {
    /// The whole file was copied.
    Whole,
    /// Nothing was measured, because the kernel or the file system lacks the feature that the method needs.
    NotHere,
}

const fn method(name: &'static str, feature: &'static str, how: CopyWay) -> Method {
    Method { name, feature, how }
}

const SEQUENTIAL: Option<libc::c_int> = Some(libc::MADV_SEQUENTIAL);

/// The six methods of the original program.
pub(crate) static CLASSIC: [Method; 6] = [
    method(
        "rw-cp",
        "read and write",
        CopyWay::ReadWrite { advice: false },
    ),
    method(
        "rw-fadv-cp",
        "posix_fadvise",
        CopyWay::ReadWrite { advice: true },
    ),
    method(
        "mm-sync-cp",
        "shared mappings",
        CopyWay::Mapped { advice: None },
    ),
    method(
        "mm-sync-madv-cp",
        "MADV_SEQUENTIAL",
        CopyWay::Mapped { advice: SEQUENTIAL },
    ),
    method(
        "mw-cp",
        "shared mappings",
        CopyWay::MapWrite { advice: None },
    ),
    method(
        "mw-madv-cp",
        "MADV_SEQUENTIAL",
        CopyWay::MapWrite { advice: SEQUENTIAL },
    ),
];

/// Methods that newer kernels made possible.
pub(crate) static MODERN: [Method; 8] = [
    method(
        "rw-dontneed-cp",
        "POSIX_FADV_DONTNEED",
        CopyWay::DontNeedBehind,
    ),
    method("mm-cold-cp", "MADV_COLD", CopyWay::ColdBehind),
    method(
        "copy-file-range-cp",
        "copy_file_range",
        CopyWay::CopyFileRange,
    ),
    method("sendfile-cp", "sendfile", CopyWay::SendFile),
    method("splice-cp", "splice", CopyWay::Splice),
    method("direct-cp", "O_DIRECT", CopyWay::Direct),
    method("dontcache-cp", "RWF_DONTCACHE", CopyWay::DontCache),
    method("uring-cp", "io_uring", CopyWay::Ring),
];

/// `RWF_DONTCACHE` of Linux 6.14 (include/uapi/linux/fs.h).
const RWF_DONTCACHE: libc::c_int = 0x80;
/// Number of bytes after which a method drops these bytes from the page cache, or marks them as cold.
const WINDOW_BYTES: u64 = 1 << 20;

/// Source, target and buffer for copying a file.
pub(crate) struct Job<'a> {
    pub from: &'a Path,
    pub to: &'a Path,
    pub pages: Pages,
    /// Buffer for methods that use read and write.
    pub buffer: &'a mut [u8],
}

impl Method {
    /// Copies the file and syncs the copy to the device. A missing feature is not an error.
    pub(crate) fn copy(&self, job: &mut Job<'_>) -> Result<CopyEnd, Stop> {
        match self.how.copy(job) {
            Ok(()) => Ok(CopyEnd::Whole),
            Err(error) if is_missing(&error) => Ok(CopyEnd::NotHere),
            Err(source) => Err(Stop::System {
                attempt: format!("cannot copy {} by {}", job.from.display(), self.name),
                source,
            }),
        }
    }
}

/// Returns true for errors with which a kernel reports that it lacks a feature.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::EINVAL | libc::EPERM)
    )
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Converts the return value of a system call, which is a number of bytes or -1.
fn count(result: libc::ssize_t) -> io::Result<u64> {
    u64::try_from(result).map_err(|_| io::Error::last_os_error())
}

impl CopyWay {
    fn copy(self, job: &mut Job<'_>) -> io::Result<()> {
        let direct = if self == Self::Direct {
            libc::O_DIRECT
        } else {
            0
        };
        let from = File::options()
            .read(true)
            .custom_flags(direct)
            .open(job.from)?;
        let to = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(direct)
            .open(job.to)?;
        let size = job.pages.bytes().0;
        match self {
            Self::ReadWrite { advice } => {
                if advice {
                    for advice in [libc::POSIX_FADV_SEQUENTIAL, libc::POSIX_FADV_NOREUSE] {
                        advise(&from, 0, 0, advice)?;
                    }
                }
                read_write(&from, &to, size, job.buffer, |_| Ok(()))?;
            }
            Self::Direct => read_write(&from, &to, size, job.buffer, |_| Ok(()))?,
            Self::DontNeedBehind => {
                read_write(&from, &to, size, job.buffer, |done| {
                    if done.is_multiple_of(WINDOW_BYTES) {
                        forget(&from, &to, done.saturating_sub(WINDOW_BYTES), WINDOW_BYTES)?;
                    }
                    Ok(())
                })?;
            }
            Self::DontCache => without_cache(&from, &to, size, job.buffer)?,
            Self::Mapped { advice } => {
                let (source, target) = map_both(&from, &to, job.pages)?;
                for mapping in [&source, &target] {
                    take(mapping, advice)?;
                }
                copy_pages(&source, &target, 0, job.pages.0);
                sync(&target)?;
            }
            Self::ColdBehind => {
                let (source, target) = map_both(&from, &to, job.pages)?;
                let window = WINDOW_BYTES / PAGE as u64;
                for at in (0..job.pages.0).step_by(number::index(window)) {
                    let pages = window.min(job.pages.0 - at);
                    copy_pages(&source, &target, at, pages);
                    for mapping in [&source, &target] {
                        if !mapping.advise_part(at, pages, libc::MADV_COLD) {
                            return Err(io::Error::last_os_error());
                        }
                    }
                }
                sync(&target)?;
            }
            Self::MapWrite { advice } => {
                let source = map(&from, job.pages, false)?;
                take(&source, advice)?;
                // SAFETY: the mapping is readable and lives through the call; the file under it was made for this scenario, which
                // is this one process: nobody writes or shortens it meanwhile.
                let bytes = unsafe { std::slice::from_raw_parts(source.start(), source.bytes()) };
                to.write_all_at(bytes, 0)?;
            }
            Self::CopyFileRange => by_kernel(size, |left| {
                // SAFETY: both descriptors are open; with null offsets the file positions are used.
                count(unsafe {
                    libc::copy_file_range(
                        from.as_raw_fd(),
                        std::ptr::null_mut(),
                        to.as_raw_fd(),
                        std::ptr::null_mut(),
                        left,
                        0,
                    )
                })
            })?,
            Self::SendFile => by_kernel(size, |left| {
                // SAFETY: both descriptors are open; with a null offset the file position is used.
                count(unsafe {
                    libc::sendfile(to.as_raw_fd(), from.as_raw_fd(), std::ptr::null_mut(), left)
                })
            })?,
            Self::Splice => splice(&from, &to, size)?,
            Self::Ring => crate::ring::copy(&from, &to, size, job.buffer)?,
        }
        to.sync_all()
    }
}

fn read_write(
    from: &File,
    to: &File,
    size: u64,
    buffer: &mut [u8],
    mut after: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < size {
        let step = number::index(size - done).min(buffer.len());
        let read = from.read_at(&mut buffer[..step], done)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.write_all_at(&buffer[..read], done)?;
        done += read as u64;
        after(done)?;
    }
    Ok(())
}

/// Writes a range of the copy back to the device, then drops this range of both files from the page cache.
fn forget(from: &File, to: &File, at: u64, length: u64) -> io::Result<()> {
    let (offset, length) = (number::signed(at), number::signed(length));
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open.
    check(unsafe { libc::sync_file_range(to.as_raw_fd(), offset, length, all) })?;
    advise(to, offset, length, libc::POSIX_FADV_DONTNEED)?;
    advise(from, offset, length, libc::POSIX_FADV_DONTNEED)
}

fn advise(file: &File, offset: i64, length: i64, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open; advice changes no content.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, length, advice) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn without_cache(from: &File, to: &File, size: u64, buffer: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < size {
        let vector = |length: usize, start: *mut u8| libc::iovec {
            iov_base: start.cast(),
            iov_len: length,
        };
        let step = number::index(size - done).min(buffer.len());
        let target = vector(step, buffer.as_mut_ptr());
        let at = number::signed(done);
        // SAFETY: the vector describes the buffer, which is writable for `step` bytes.
        let read = count(unsafe {
            libc::preadv2(from.as_raw_fd(), &raw const target, 1, at, RWF_DONTCACHE)
        })?;
        let source = vector(number::index(read), buffer.as_mut_ptr());
        // SAFETY: the vector describes the bytes just read, at most the buffer's `step`, which live through the call.
        let written = count(unsafe {
            libc::pwritev2(to.as_raw_fd(), &raw const source, 1, at, RWF_DONTCACHE)
        })?;
        if read == 0 || written != read {
            return Err(io::ErrorKind::WriteZero.into());
        }
        done += read;
    }
    Ok(())
}

fn by_kernel(size: u64, mut step: impl FnMut(usize) -> io::Result<u64>) -> io::Result<()> {
    let mut left = size;
    while left > 0 {
        match step(number::index(left)) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(copied) => left = left.saturating_sub(copied),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn splice(from: &File, to: &File, size: u64) -> io::Result<()> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the descriptors were just made and belong to nobody else.
    let [out, into] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    let null = std::ptr::null_mut;
    let mut left = number::index(size);
    while left > 0 {
        // SAFETY: all descriptors are open; with null offsets the file positions are used.
        let filled = count(unsafe {
            libc::splice(
                from.as_raw_fd(),
                null(),
                into.as_raw_fd(),
                null(),
                left.min(1 << 16),
                0,
            )
        })?;
        if filled == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut waiting = number::index(filled);
        while waiting > 0 {
            // SAFETY: both descriptors are open; with null offsets the pipe's and the file's own positions are used.
            let moved = count(unsafe {
                libc::splice(out.as_raw_fd(), null(), to.as_raw_fd(), null(), waiting, 0)
            })?;
            waiting = waiting.saturating_sub(number::index(moved));
        }
        left -= number::index(filled);
    }
    Ok(())
}

fn map(file: &File, pages: Pages, writable: bool) -> io::Result<Mapping> {
    let whole = file.metadata()?.len() >= pages.bytes().0;
    Mapping::of_file(file, pages, writable, whole)
}

/// Maps source and target. The target is first extended by writing its last word, as in the original program.
fn map_both(from: &File, to: &File, pages: Pages) -> io::Result<(Mapping, Mapping)> {
    to.write_all_at(&[0; 8], pages.bytes().0 - 8)?;
    Ok((map(from, pages, false)?, map(to, pages, true)?))
}

fn take(mapping: &Mapping, advice: Option<libc::c_int>) -> io::Result<()> {
    match advice {
        Some(advice) if !mapping.advise(advice) => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn copy_pages(from: &Mapping, to: &Mapping, at: u64, pages: u64) {
    let length = number::index(pages) * PAGE;
    assert!(
        at + pages <= from.pages().min(to.pages()),
        "a copy beyond its mappings"
    );
    // SAFETY: both ranges lie within their mappings, which are different ones.
    unsafe { std::ptr::copy_nonoverlapping(from.page(at), to.page(at), length) };
}

fn sync(mapping: &Mapping) -> io::Result<()> {
    // SAFETY: the range is the mapping.
    check(unsafe { libc::msync(mapping.start().cast(), mapping.bytes(), libc::MS_SYNC) })
}
