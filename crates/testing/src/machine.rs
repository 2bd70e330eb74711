//! Keeps tests that change the running machine, such as its swap or its settings, apart from tests that compare its
//! state.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;

/// The right of a test to change the machine, or to compare its state, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    /// File whose lock is held.
    _file: File,
}

/// Returns the right to change the machine, once no test holds the right of [`alone`]. Several tests may hold it at the
/// same time.
pub fn beside_others() -> Turn {
    let file = open();
    file.lock_shared()
        .unwrap_or_else(|why| panic!("locking: {why}"));
    Turn { _file: file }
}

/// Returns the right to compare the state of the whole machine, once no other test holds any of the two rights. Until
/// it is dropped, other tests wait for theirs.
pub fn alone() -> Turn {
    let file = open();
    file.lock().unwrap_or_else(|why| panic!("locking: {why}"));
    Turn { _file: file }
}

fn open() -> File {
    let path = std::env::temp_dir().join("pagetide-tests-of-the-machine.lock");
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o666)
        .open(&path)
        .unwrap_or_else(|why| panic!("opening {}: {why}", path.display()))
}
