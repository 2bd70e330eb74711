//! The identity of the guest's program.

use pagetide_program::PROGRAM;
use pagetide_record::subject::hex;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of [`PROGRAM`] in hexadecimal. It is part of every record, and of every snapshot's name.
pub fn digest() -> String {
    hex(&Sha256::digest(PROGRAM))
}
