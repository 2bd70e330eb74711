//! The guest's initial file system: a cpio archive with the guest's program as `/init`.
//! Format: `newc`, kernel `Documentation/driver-api/early-userspace/buffer-format.rst`.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Writer of a cpio archive.
pub struct Archive<W> {
    out: W,
    inode: u32,
    written: u64,
}

impl<W: Write> Archive<W> {
    /// Creates an archive that is written to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            inode: 0,
            written: 0,
        }
    }

    /// Adds a file with these bytes. `name` has no leading slash.
    pub fn file(&mut self, name: &str, executable: bool, bytes: &[u8]) -> io::Result<()> {
        self.entry(name, if executable { 0o100_755 } else { 0o100_644 }, bytes)
    }

    /// Adds a folder. `name` has no leading slash.
    pub fn folder(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, 0o040_755, &[])
    }

    /// Writes the end of the archive.
    pub fn finish(mut self) -> io::Result<()> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()
    }

    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.inode += 1;
        let size =
            u32::try_from(bytes.len()).map_err(|_| io::Error::other("a file of 4 GiB or more"))?;
        let name_size =
            u32::try_from(name.len() + 1).map_err(|_| io::Error::other("a name too long"))?;
        // Fields: inode, mode, uid, gid, links, mtime, size, device and rdevice major and minor, name size, check.
        let fields = [self.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        let mut head = String::from("070701");
        for field in fields {
            let _ = write!(head, "{field:08X}");
        }
        self.put(head.as_bytes())?;
        self.put(name.as_bytes())?;
        self.put(&[0])?;
        self.pad()?;
        self.put(bytes)?;
        self.pad()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn pad(&mut self) -> io::Result<()> {
        while !self.written.is_multiple_of(4) {
            self.put(&[0])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_hold_their_bytes() {
        let mut out = Vec::new();
        let mut archive = Archive::new(&mut out);
        archive.folder("proc").unwrap();
        archive.file("init", true, b"#!program").unwrap();
        archive.finish().unwrap();
        assert!(out.len().is_multiple_of(4));
        assert!(out.starts_with(b"070701"));
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("#!program") && text.contains("TRAILER!!!"));
    }
}
