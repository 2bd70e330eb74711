//! Limits that a shell sets on this process.

/// Makes writing beyond the limit on file sizes (`ulimit -f`) fail with `EFBIG`, instead of ending the process by
/// SIGXFSZ without a message. Programs that this process starts inherit this.
pub fn file_size_is_an_error() {
    // SAFETY: no handler is installed, so nothing of ours runs in a signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
