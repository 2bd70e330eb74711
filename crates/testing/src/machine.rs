//! Lets tests that change the running machine, such as its swap or its settings, run one after another.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;

/// The right of a test to change the machine, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    /// File whose lock is held.
    _file: File,
}

/// Waits until no test compares the state of the whole machine, and keeps such tests from starting. Several tests may
/// hold this right at the same time.
pub fn beside_others() -> Turn {
    let file = open();
    file.lock_shared()
        .unwrap_or_else(|why| panic!("locking: {why}"));
    Turn { _file: file }
}

/// Waits until no other test changes the machine, and keeps such tests from starting.
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
