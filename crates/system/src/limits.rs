//! Limits that a shell sets on this process.

/// Makes writing beyond the limit on file sizes (`ulimit -f`) an error, `EFBIG`. Otherwise SIGXFSZ ends the process without a
/// word. Programs that this process starts inherit it.
pub fn file_size_is_an_error() {
    // SAFETY: no handler is installed, so nothing of ours runs in a signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
