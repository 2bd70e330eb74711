//! Everything that determines a snapshot, and the files with which its guest boots.

use pagetide_guest::spec::BootSpec;
use pagetide_record::subject::hex;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::clock;
use crate::handover::Handover;
use crate::machine::{BOOT_SHIFT, CPU, MACHINE};

/// Inputs that determine a snapshot.
#[derive(Clone, Debug, Serialize)]
pub struct Recipe {
    /// Digest of the kernel's files.
    pub kernel: String,
    /// Name and version of the emulator.
    pub emulator: String,
    /// Digest of the guest's program.
    pub guest: String,
    /// Command-line arguments of the emulator that determine the machine.
    pub arguments: Vec<String>,
    /// What the guest must do when it boots.
    pub boot: BootSpec,
}

impl Recipe {
    /// Returns the name of the snapshot, which is a digest of all inputs.
    pub fn key(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(MACHINE);
        hash.update(CPU);
        hash.update(BOOT_SHIFT.to_le_bytes());
        // The preloaded object is hashed too, because it affects the state in which the emulator stops.
        hash.update(clock::OBJECT);
        hash.update(serde_json::to_vec(self).unwrap_or_default());
        hex(&hash.finalize()[..16])
    }
}

/// Files for the guest, each with its path and content.
pub type Files = Vec<(String, Vec<u8>)>;

/// Content of the guest's initial file system.
pub struct Contents {
    /// Bytes of the program that runs as `/init`.
    pub program: &'static [u8],
    /// Files for the guest other than its program.
    pub files: Files,
    /// Image of the user program's root; `None` for scenarios without a root.
    pub root: Option<Handover>,
}
