//! A text file of the kernel's, kept open and read again and again into one buffer.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::ProbeError;

/// Something that can be filled from a kernel's text, again and again, without allocating once it has its size.
pub trait Parse {
    /// Replaces the content by what `text` says. Text that cannot be understood leaves out what it concerns; it never panics.
    fn parse(&mut self, text: &[u8]);
}

/// An open text source with its buffer and its latest reading.
#[derive(Debug)]
pub struct TextFile<T> {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    reading: T,
}

impl<T: Parse> TextFile<T> {
    /// Opens a source and reads it once, so that later samples find buffer and names prepared.
    pub fn open(path: &Path, empty: T) -> Result<Self, ProbeError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ProbeError::unsupported(
                path.display().to_string(),
                "the file does not exist on this kernel or in its configuration",
            ),
            _ => ProbeError::io("open", path, error),
        })?;
        let mut source = Self {
            path: path.to_owned(),
            file,
            buffer: vec![0; 16 << 10],
            reading: empty,
        };
        source.sample()?;
        // Leave room to grow, so that longer numbers do not make a later sample allocate.
        let room = source.buffer.len();
        source.buffer.resize(room.saturating_mul(2), 0);
        Ok(source)
    }

    /// Reads the source anew; gives the reading that is also kept.
    pub fn sample(&mut self) -> Result<&T, ProbeError> {
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            let offset = u64::try_from(filled).unwrap_or(u64::MAX);
            match rustix::io::pread(&self.file, &mut self.buffer[filled..], offset) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP) => {
                    return Err(ProbeError::unsupported(
                        self.path.display().to_string(),
                        "the kernel has it switched off (for pressure: boot with psi=1)",
                    ));
                }
                Err(error) => return Err(ProbeError::io("read", &self.path, error)),
            }
        }
        self.reading.parse(&self.buffer[..filled]);
        Ok(&self.reading)
    }

    /// The latest reading.
    pub fn latest(&self) -> &T {
        &self.reading
    }

    /// Where the source lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
