//! Large data in the page: deflated (RFC 1951) and base64-encoded, each blob in a script element that no browser runs.

use std::collections::HashMap;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};

/// Writes blobs into the page; identical blobs are written once.
pub(crate) struct Blobs<'a> {
    out: &'a mut dyn Write,
    known: HashMap<[u8; 32], usize>,
    bytes: u64,
}

impl<'a> Blobs<'a> {
    /// Creates a writer of blobs into `out`.
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            known: HashMap::new(),
            bytes: 0,
        }
    }

    /// Writes a blob, unless an identical one was written before, and returns its number.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let digest = Sha256::digest(bytes).into();
        if let Some(number) = self.known.get(&digest) {
            return Ok(*number);
        }
        let number = self.known.len();
        let packed = deflate(bytes)?;
        self.bytes += packed.len() as u64;
        writeln!(
            self.out,
            "<script type=\"application/octet-stream\" id=\"b{number}\">{}</script>",
            STANDARD.encode(packed)
        )?;
        self.known.insert(digest, number);
        Ok(number)
    }

    /// Returns the number of deflated bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Compresses bytes with deflate (RFC 1951).
pub(crate) fn deflate(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(
        Vec::with_capacity(bytes.len() / 2 + 64),
        Compression::new(5),
    );
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Appends a number in groups of seven bits, the lowest first (LEB128).
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Maps signed numbers of small magnitude to small unsigned numbers.
pub(crate) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Appends the lowest `planes` bytes of each value: first the lowest byte of all values, then the next byte of all
/// values. High bytes are mostly zero and compress well.
pub(crate) fn planes(out: &mut Vec<u8>, values: &[u64], planes: usize) {
    for plane in 0..planes {
        out.extend(values.iter().map(|value| value.to_le_bytes()[plane]));
    }
}
