//! Creates and reads files of a workload.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use pagetide_quantity::Bytes;

use crate::error::Stop;
use crate::fill::Filler;
use crate::page::PAGE;
use crate::trial::Trial;

/// Returns the size of an ext4 file system for this amount of data: 1/16 more for metadata, and some reserve. It is
/// rounded up in large steps, so that trials with slightly different data share a guest snapshot.
pub(crate) fn filesystem_for(data: Bytes) -> Bytes {
    let size = data.0 + data.0 / 16 + Bytes::from_mib(8).0;
    Bytes(size.next_multiple_of(32 << 20))
}

/// Writes a file with generated page contents, syncs it and drops it from the page cache. Returns the open file.
pub(crate) fn make_file(path: &Path, pages: u64, filler: &Filler) -> Result<File, Stop> {
    let cannot = || Stop::system(format!("cannot write {}", path.display()));
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(cannot())?;
    let mut buffer = [0; PAGE];
    for page in 0..pages {
        filler.write(&mut buffer, page);
        file.write_all(&buffer).map_err(cannot())?;
    }
    file.sync_all().map_err(cannot())?;
    forget(path);
    Ok(file)
}

/// Writes back all dirty data and drops the caches of the machine. Warns if the process lacks the privilege to drop
/// them. On a machine with other users, writes back and drops only the files in the work folder.
pub(crate) fn drop_caches(trial: &mut Trial<'_>) {
    if !trial.place.surroundings.own_machine {
        forget_files(trial.place.work_dir);
        return;
    }
    // SAFETY: no arguments.
    unsafe { libc::sync() };
    if std::fs::write("/proc/sys/vm/drop_caches", "3").is_err() {
        trial.note("caches were not dropped between the steps: run as root");
    }
}

/// Writes back the files in a folder and drops them from the page cache, without those in its subfolders.
fn forget_files(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_file() {
            // Errors of a device are found when the scenario reads or writes the file.
            let _ = File::open(&path).and_then(|file| file.sync_all());
            forget(&path);
        }
    }
}

/// Drops the clean pages of a file from the page cache.
pub(crate) fn forget(path: &Path) {
    if let Ok(file) = File::open(path) {
        // SAFETY: advice on an open file changes no content.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
}

/// Reads a whole file and discards the data.
pub(crate) fn read_through(path: &Path) -> std::io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = [0; PAGE];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}
