//! The guest's program, built before this crate and embedded in it (see `build/guest.rs`).

use pagetide_record::subject::hex;
use sha2::{Digest, Sha256};

/// The program that runs as `/init` in every guest.
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest"));

/// Returns the SHA-256 of [`PROGRAM`] in hexadecimal. It is part of every record, and of every snapshot's name.
pub fn digest() -> String {
    hex(&Sha256::digest(PROGRAM))
}
