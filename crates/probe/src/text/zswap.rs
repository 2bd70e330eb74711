//! zswap's counters in debugfs, each a file of its own (mm/zswap.c, `zswap_debugfs_init`).

use std::fs::File;
use std::path::Path;

use super::counters::Counters;
use super::scan;
use crate::ProbeError;

/// The open files of zswap's debugfs directory. The traffic itself stands in vmstat: `zswpin`, `zswpout`, `zswpwb`.
#[derive(Debug)]
pub struct Zswap {
    files: Vec<(String, File)>,
    reading: Counters,
}

impl Zswap {
    /// Opens every file of the directory (`/sys/kernel/debug/zswap` unless debugfs is mounted elsewhere).
    pub fn open(directory: &Path) -> Result<Self, ProbeError> {
        let listing = std::fs::read_dir(directory).map_err(|_| {
            ProbeError::unsupported(
                "zswap",
                format!(
                    "{} is not there: the kernel has no zswap, zswap was never enabled, or debugfs is not mounted",
                    directory.display()
                ),
            )
        })?;
        let mut files = Vec::new();
        for entry in listing.flatten() {
            if let (Ok(name), Ok(file)) =
                (entry.file_name().into_string(), File::open(entry.path()))
            {
                files.push((name, file));
            }
        }
        // The directory's order is arbitrary; records must not depend on it.
        files.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut zswap = Self {
            files,
            reading: Counters::new(),
        };
        zswap.sample();
        Ok(zswap)
    }

    /// Reads all files anew. A file that cannot be read is left out and counted as unparsed.
    pub fn sample(&mut self) -> &Counters {
        let mut filler = self.reading.refill();
        let mut text = [0_u8; 64];
        for (name, file) in &self.files {
            let value = rustix::io::pread(file, &mut text, 0)
                .ok()
                .and_then(|length| scan::number(scan::trim(&text[..length])));
            match value {
                Some(value) => filler.put(b"", name.as_bytes(), value),
                None => filler.skip(),
            }
        }
        drop(filler);
        &self.reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_counter_in_a_fixed_order() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("stored_pages"), "42\n").unwrap();
        std::fs::write(directory.path().join("pool_limit_hit"), "7\n").unwrap();
        std::fs::write(directory.path().join("broken"), "x\n").unwrap();
        let mut zswap = Zswap::open(directory.path()).unwrap();
        std::fs::write(directory.path().join("stored_pages"), "43\n").unwrap();
        let all: Vec<_> = zswap
            .sample()
            .iter()
            .map(|(k, v)| (k.to_owned(), v))
            .collect();
        assert_eq!(
            all,
            [("pool_limit_hit".into(), 7), ("stored_pages".into(), 43)]
        );
        assert_eq!(zswap.sample().unparsed(), 1);
    }

    #[test]
    fn a_kernel_without_zswap_is_said_to_be_one() {
        let error = Zswap::open(Path::new("/nonexistent/zswap")).unwrap_err();
        assert!(matches!(error, ProbeError::Unsupported { .. }));
    }
}
