//! Decompression of gzip, xz and zstd files, detected by their first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};

/// Size of the read buffer in bytes: small enough to stay in a core's private cache until it is used.
const BUFFER_BYTES: usize = 3 << 15;

/// Opens a file for reading, decompressing it if needed.
pub(super) fn open(mut file: File) -> io::Result<Box<dyn BufRead>> {
    let mut head = [0; 6];
    let mut length = 0;
    while length < head.len() {
        match file.read(&mut head[length..])? {
            0 => break,
            read => length += read,
        }
    }
    file.rewind()?;
    let buffered = |reader: Box<dyn Read>| -> Box<dyn BufRead> {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, reader))
    };
    Ok(match head[..length] {
        [0x1f, 0x8b, ..] => buffered(Box::new(flate2::read::MultiGzDecoder::new(file))),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            buffered(Box::new(liblzma::read::XzDecoder::new_multi_decoder(file)))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => buffered(Box::new(zstd::Decoder::new(file)?)),
        _ => Box::new(BufReader::with_capacity(BUFFER_BYTES, file)),
    })
}
