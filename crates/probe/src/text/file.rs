//! A text file of the kernel that is kept open and read repeatedly into the same buffer.

use std::fs::File;
use std::path::{Path, PathBuf};

use pagetide_system::{Counters, Syntax};
use rustix::io::Errno;

use crate::ProbeError;

/// An open counter file with its buffer and its latest numbers.
#[derive(Debug)]
pub struct TextFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    syntax: Syntax,
    counters: Counters,
}

impl TextFile {
    /// Opens a file and reads it once. This allocates the buffer and the names, so later samples need not. Fails with
    /// [`ProbeError::Unsupported`] if the file does not exist or the kernel has it switched off.
    pub fn open(path: &Path, syntax: Syntax) -> Result<Self, ProbeError> {
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
            syntax,
            counters: Counters::new(),
        };
        source.sample()?;
        // Twice the size, so that a later sample with longer numbers does not allocate.
        let room = source.buffer.len();
        source.buffer.resize(room.saturating_mul(2), 0);
        Ok(source)
    }

    /// Reads the file again and returns the new numbers.
    pub fn sample(&mut self) -> Result<&Counters, ProbeError> {
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
        self.counters.parse(&self.buffer[..filled], self.syntax);
        Ok(&self.counters)
    }

    /// Returns the numbers from the latest read.
    pub fn latest(&self) -> &Counters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernels_vmstat_is_read_whole() {
        let mut file = TextFile::open(Path::new("/proc/vmstat"), Syntax::KeyValue).unwrap();
        let first = file.sample().unwrap().clone();
        assert!(first.get("pgfault").unwrap() > 0);
        let delta = file.sample().unwrap().delta(&first);
        assert!(delta.growth("pgfault").is_some());
        assert!(delta.only_after.is_empty());
    }
}
