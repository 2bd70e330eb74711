//! Programs that tests write and start.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that the test will start: an executable file with the content `text`.
///
/// A file cannot be started while any process has it open for writing (`ETXTBSY`, execve(2)). If a test wrote the file
/// itself, a process that another thread starts at this moment could inherit the open file until its own exec. So a
/// child process writes it, and only the child's end of a pipe is inherited by others.
///
/// # Panics
///
/// If the file cannot be written.
pub fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("sh: {why}"));
    let sent = writer
        .stdin
        .take()
        .map(|mut pipe| pipe.write_all(text.as_bytes()));
    let status = writer.wait();
    assert!(
        matches!(sent, Some(Ok(()))) && status.is_ok_and(|status| status.success()),
        "writing {}: {sent:?}",
        path.display()
    );
}
