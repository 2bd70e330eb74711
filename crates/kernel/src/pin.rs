//! Pins: each stores the kernel to which a kernel reference was last resolved. With a pin, a second run needs neither
//! network nor apt.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pagetide_outside::{FileOrigin, read, replace};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::KernelError;

/// Maximum number of bytes read from a pin's file.
const MAX_PIN_BYTES: u64 = 1 << 20;

/// A kernel reference and the kernel to which it was resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The kernel reference in canonical form.
    pub reference: String,
    /// Digest of the kernel.
    pub digest: Digest,
    /// Fingerprint of the local files from which the kernel was made; empty if apt fetched it.
    pub stamp: String,
    /// Time at which the reference was resolved, in seconds since 1970.
    pub at: u64,
}

/// The folder of pins, with one small file per reference.
#[derive(Debug, Clone)]
pub struct Pins {
    folder: PathBuf,
}

/// Reads a pin from its file; `None` if the file cannot be read or parsed.
fn pin(path: &Path) -> Option<Pin> {
    let bytes = read(path, FileOrigin::Own, MAX_PIN_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

impl Pins {
    /// Returns the folder of pins in the cache at `root`.
    pub fn of(root: &Path) -> Self {
        Self {
            folder: root.join("pins"),
        }
    }

    fn path(&self, reference: &str) -> PathBuf {
        self.folder
            .join(format!("{}.json", Digest::of(reference.as_bytes()).short()))
    }

    /// Returns the pin of a reference; `None` if there is no pin or it cannot be read.
    pub fn get(&self, reference: &str) -> Option<Pin> {
        let pin = pin(&self.path(reference))?;
        (pin.reference == reference).then_some(pin)
    }

    /// Pins a kernel reference to a kernel, replacing its previous pin.
    pub fn set(&self, reference: &str, digest: &Digest, stamp: &str) -> Result<(), KernelError> {
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let (reference, stamp) = (reference.to_owned(), stamp.to_owned());
        let path = self.path(&reference);
        let pin = Pin {
            reference,
            digest: digest.clone(),
            stamp,
            at,
        };
        let text = serde_json::to_string_pretty(&pin).unwrap_or_default() + "\n";
        fs::create_dir_all(&self.folder).map_err(KernelError::cache("making", &self.folder))?;
        replace(&path, text.as_bytes()).map_err(KernelError::cache("writing", &path))
    }

    /// Returns all pins, unordered.
    pub fn all(&self) -> Vec<Pin> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| pin(&entry.path()))
            .collect()
    }

    /// Removes incomplete pins older than an hour. Writing a pin takes a moment, so the process that wrote such a pin
    /// was interrupted.
    pub fn clean(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let age = entry.metadata().and_then(|data| data.modified());
            let old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() > 3600));
            if old
                && entry
                    .path()
                    .extension()
                    .is_some_and(|ending| ending == "new")
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes all pins to this kernel.
    pub fn forget(&self, digest: &Digest) -> Result<(), KernelError> {
        for pin in self.all().iter().filter(|pin| pin.digest == *digest) {
            let path = self.path(&pin.reference);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(KernelError::cache("removing", &path)(e));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_kept_replaced_and_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let pins = Pins::of(root.path());
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        assert_eq!(pins.get("debian:sid"), None);
        pins.set("debian:sid", &a, "").unwrap();
        pins.set("debian:sid", &b, "").unwrap();
        pins.set("x.deb", &b, "stamp").unwrap();
        assert_eq!(pins.get("debian:sid").unwrap().digest, b);
        assert_eq!(pins.all().len(), 2);
        pins.forget(&b).unwrap();
        assert_eq!(pins.all(), []);
    }

    #[test]
    fn a_damaged_pin_counts_as_none() {
        let root = tempfile::tempdir().unwrap();
        let pins = Pins::of(root.path());
        pins.set("debian:sid", &Digest::of(b"a"), "").unwrap();
        fs::write(pins.path("debian:sid"), "{\"reference\":").unwrap();
        assert_eq!(pins.get("debian:sid"), None);
    }
}
