//! Reads files that others may have written, with limits, and safely writes files in folders where others can write.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::refusal::Refusal;

/// Where a file comes from. This determines which types of file are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOrigin {
    /// The file is in the store or the cache: it must be a regular file, not a symbolic link.
    Own,
    /// The file is in a folder that the user named: it must be a regular file, or a symbolic link to one.
    Listed,
    /// The user named the file: pipes and devices are allowed too, and `-` is standard input.
    Named,
}

/// Returns the type of a file in words, with its article.
const fn kind(of: FileType) -> &'static str {
    match of {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        _ => "a device",
    }
}

/// Returns the type of an open file and its size in bytes.
fn status(file: &File) -> io::Result<(FileType, u64)> {
    let status = rustix::fs::fstat(file)?;
    let size = u64::try_from(status.st_size).unwrap_or_default();
    Ok((FileType::from_raw_mode(status.st_mode), size))
}

/// Opens a file with `flags` and returns it. Fails if it is not a regular file, without blocking on a pipe.
fn open_regular(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // New files get the same mode as with `File::create`; the umask applies.
    let file = match rustix::fs::open(path, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => File::from(file),
        Err(why) => return Err(refused(path, why, flags)),
    };
    match status(&file)?.0 {
        FileType::RegularFile => Ok(file),
        other => Err(Refusal::Kind(kind(other)).into()),
    }
}

/// Converts the error of a failed open to a [`Refusal`] if the cause is a symbolic link or a special file.
fn refused(path: &Path, why: Errno, flags: OFlags) -> io::Error {
    let found = fs::symlink_metadata(path);
    let found = found.map(|data| FileType::from_raw_mode(rustix_mode(&data)));
    match (why, found) {
        (Errno::LOOP, Ok(FileType::Symlink)) if flags.contains(OFlags::NOFOLLOW) => {
            Refusal::Link.into()
        }
        (Errno::NXIO | Errno::ISDIR, Ok(other)) if other != FileType::RegularFile => {
            Refusal::Kind(kind(other)).into()
        }
        _ => why.into(),
    }
}

fn rustix_mode(data: &fs::Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt;
    data.mode()
}

/// Opens a file for reading. Refuses a file that is not regular, and does not block on it, unless the user named it.
/// Then only a folder is refused.
///
/// # Errors
/// Returns the system's error, or a [`Refusal`] as an I/O error.
pub fn open(path: &Path, place: FileOrigin) -> io::Result<File> {
    match place {
        FileOrigin::Own => open_regular(path, OFlags::RDONLY | OFlags::NOFOLLOW),
        FileOrigin::Listed => open_regular(path, OFlags::RDONLY),
        // Opening a pipe that the user named may block until the pipe has a writer, as with `cat`.
        FileOrigin::Named if path == Path::new("-") => {
            let own = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 0)?;
            Ok(File::from(own))
        }
        FileOrigin::Named => {
            let file = File::open(path)?;
            match status(&file)?.0 {
                FileType::Directory => Err(Refusal::Kind("a folder").into()),
                _ => Ok(file),
            }
        }
    }
}

/// Contents of pipes, devices and standard input that were read, by path. A pipe can be read only once, but a plan and
/// the build after it read the same patch.
static GIVEN: Mutex<BTreeMap<PathBuf, Arc<[u8]>>> = Mutex::new(BTreeMap::new());

/// Reads a file of at most `limit` bytes. The contents of a pipe, a device or standard input are kept, and are returned
/// if the user names the same path again.
///
/// # Errors
/// Returns the system's error, or a [`Refusal`] as an I/O error.
pub fn read(path: &Path, place: FileOrigin, limit: u64) -> io::Result<Vec<u8>> {
    let given = || GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    if place == FileOrigin::Named
        && let Some(bytes) = given().get(path)
    {
        return Ok(bytes.to_vec());
    }
    let file = open(path, place)?;
    let (kind, size) = status(&file)?;
    let is_regular = kind == FileType::RegularFile;
    if is_regular && size > limit {
        return Err(Refusal::TooLarge { limit }.into());
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Refusal::TooLarge { limit }.into());
    }
    if !is_regular || path == Path::new("-") {
        given().insert(path.to_owned(), bytes.as_slice().into());
    }
    Ok(bytes)
}

/// Reads a UTF-8 text of at most `limit` bytes.
///
/// # Errors
/// Returns the errors of [`read`], and [`io::ErrorKind::InvalidData`] if the text is not UTF-8.
pub fn read_text(path: &Path, place: FileOrigin, limit: u64) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text");
    String::from_utf8(read(path, place, limit)?).map_err(no_text)
}

/// Opens a file of the store or cache for locking, reading and writing. Creates the file if needed. Symbolic links are
/// not followed.
///
/// # Errors
/// Returns the system's error, or a [`Refusal`] as an I/O error.
pub fn lock_file(path: &Path) -> io::Result<File> {
    open_regular(path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW)
}

/// Opens a file of the store or cache for writing and truncates it. Creates the file if needed. Symbolic links are not
/// followed.
///
/// # Errors
/// Returns the system's error, or a [`Refusal`] as an I/O error.
pub fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW;
    let file = open_regular(path, flags)?;
    file.set_len(0)?;
    Ok(file)
}

/// Replaces the contents of a file of the store or cache atomically: a reader sees the old or the new contents. If the
/// path is a symbolic link, the link is replaced, and its target does not change.
///
/// # Errors
/// Returns the system's error.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension(format!("{}.new", std::process::id()));
    let write = || {
        // An earlier process with the same id may have left this file.
        match fs::remove_file(&part) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        File::create_new(&part)?.write_all(bytes)?;
        fs::rename(&part, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const LIMIT: u64 = 1 << 16;

    fn refusal<T>(found: io::Result<T>) -> Option<Refusal> {
        Refusal::of(&found.err().unwrap())
    }

    #[test]
    fn a_pipe_without_a_writer_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for place in [FileOrigin::Own, FileOrigin::Listed] {
            let found = refusal(read(&pipe, place, LIMIT));
            assert_eq!(found, Some(Refusal::Kind("a named pipe")));
        }
        // Without a reader, opening a pipe for writing would also block.
        let found = [refusal(create(&pipe)), refusal(lock_file(&pipe))];
        assert_eq!(found, [Some(Refusal::Kind("a named pipe")); 2]);
    }

    #[test]
    fn a_device_without_end_is_read_to_the_limit() {
        let zero = Path::new("/dev/zero");
        let found = refusal(read(zero, FileOrigin::Named, LIMIT));
        assert_eq!(found, Some(Refusal::TooLarge { limit: LIMIT }));
        let found = refusal(read(zero, FileOrigin::Own, LIMIT));
        assert_eq!(found, Some(Refusal::Kind("a device")));
    }

    #[test]
    fn a_link_is_followed_where_a_user_named_it_and_nowhere_in_our_own_folders() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "kept").unwrap();
        symlink(&file, &link).unwrap();
        for place in [FileOrigin::Listed, FileOrigin::Named] {
            assert_eq!(read(&link, place, LIMIT).unwrap(), b"kept");
        }
        assert_eq!(
            refusal(read(&link, FileOrigin::Own, LIMIT)),
            Some(Refusal::Link)
        );
        assert_eq!(refusal(create(&link)), Some(Refusal::Link));
        assert_eq!(refusal(lock_file(&link)), Some(Refusal::Link));
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"kept");
        assert_eq!(fs::read(&link).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_is_planted_under_the_name_of_a_part_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, path) = (folder.path().join("file"), folder.path().join("note.json"));
        fs::write(&file, "kept").unwrap();
        symlink(
            &file,
            path.with_extension(format!("{}.new", std::process::id())),
        )
        .unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"kept");
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_file_is_read_to_its_limit_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, [7; 10]).unwrap();
        for place in [FileOrigin::Own, FileOrigin::Listed, FileOrigin::Named] {
            assert_eq!(read(&path, place, 10).unwrap(), [7; 10]);
            let found = refusal(read(&path, place, 9));
            assert_eq!(found, Some(Refusal::TooLarge { limit: 9 }));
        }
        // A file in /proc has size 0 but is not empty.
        let status = read_text(Path::new("/proc/self/status"), FileOrigin::Listed, LIMIT).unwrap();
        assert!(status.contains("VmRSS"), "{status}");
    }

    #[test]
    fn a_pipe_that_a_user_names_is_read_once_and_known_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, "a patch")
        });
        for _ in 0..2 {
            assert_eq!(read(&pipe, FileOrigin::Named, LIMIT).unwrap(), b"a patch");
        }
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn a_folder_is_called_one() {
        for place in [FileOrigin::Own, FileOrigin::Listed, FileOrigin::Named] {
            let found = refusal(read(Path::new("/"), place, LIMIT));
            assert_eq!(found, Some(Refusal::Kind("a folder")));
        }
        let found = refusal(create(Path::new("/")));
        assert_eq!(found, Some(Refusal::Kind("a folder")));
    }
}
