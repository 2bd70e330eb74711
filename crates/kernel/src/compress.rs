//! Compression formats of kernels, modules and packages, recognised by their magic numbers.

use std::io::{self, Read};

/// A compression format, recognised by its magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The gzip format (RFC 1952).
    Gzip,
    /// The .xz format.
    Xz,
    /// The older .lzma format.
    Lzma,
    /// The Zstandard format (RFC 8878).
    Zstd,
    /// The legacy frame of LZ4, which kernel images use.
    Lz4,
    /// The bzip2 format, which is recognised but cannot be decompressed here.
    Bzip2,
    /// The LZO format, which is recognised but cannot be decompressed here.
    Lzo,
}

impl Compression {
    /// Returns the compression format of data that begins with `start`, recognised by its magic number; `None` if it is
    /// not recognised.
    ///
    /// The magic numbers are those of the kernel's `lib/decompress.c`.
    pub fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b | 0x9e, ..] => Some(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x5d, 0, 0, ..] => Some(Self::Lzma),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0x02, 0x21, 0x4c, 0x18, ..] => Some(Self::Lz4),
            [b'B', b'Z', b'h', ..] => Some(Self::Bzip2),
            [0x89, b'L', b'Z', b'O', ..] => Some(Self::Lzo),
            _ => None,
        }
    }

    /// Returns a reader of the decompressed data of `from`. It uses at most 256 MiB of memory. Fails for
    /// formats that cannot be decompressed here.
    pub fn reader<'a>(self, from: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        match self {
            Self::Gzip => Ok(Box::new(flate2::read::GzDecoder::new(from))),
            Self::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(MAX_BYTES, 0)?;
                Ok(Box::new(liblzma::read::XzDecoder::new_stream(from, stream)))
            }
            Self::Lzma => {
                let stream = liblzma::stream::Stream::new_lzma_decoder(MAX_BYTES)?;
                Ok(Box::new(liblzma::read::XzDecoder::new_stream(from, stream)))
            }
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::new(from)?;
                // The kernel's images are compressed with `--ultra -22`, which needs more than the default window
                // limit.
                decoder.window_log_max(WINDOW_BITS)?;
                Ok(Box::new(decoder))
            }
            Self::Lz4 => Ok(Box::new(Lz4Legacy::new(from))),
            Self::Bzip2 | Self::Lzo => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("{self:?} is not read here"),
            )),
        }
    }
}

/// Maximum amount of memory that a decoder may allocate, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum window size of a Zstandard decoder, as a power of two: 2^28 = [`MAX_BYTES`].
const WINDOW_BITS: u32 = 28;

/// Returns `bytes` decompressed, or unchanged if they are not compressed. Fails if the decompressed data is larger than
/// `limit` bytes, so a small file cannot fill the memory.
pub fn unpack(bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let Some(compression) = Compression::of(bytes) else {
        return Ok(bytes.to_vec());
    };
    let mut plain = Vec::new();
    compression
        .reader(bytes)?
        .take(limit + 1)
        .read_to_end(&mut plain)?;
    if plain.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it unpacks to more than {limit} bytes"),
        ));
    }
    Ok(plain)
}

/// Size of a decompressed block in LZ4's legacy frame, in bytes.
const LZ4_BLOCK_BYTES: usize = 8 << 20;

/// Decompresses LZ4's legacy frame: a magic number, then blocks of up to 8 MiB, each preceded by its compressed length
/// (little endian). The kernel's build appends the uncompressed length. These four bytes are not a block, so reading
/// ends there.
struct Lz4Legacy<R> {
    from: R,
    started: bool,
    ended: bool,
    block: Vec<u8>,
    at: usize,
}

impl<R: Read> Lz4Legacy<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            started: false,
            ended: false,
            block: Vec::new(),
            at: 0,
        }
    }

    fn next_block(&mut self) -> io::Result<()> {
        let mut word = [0; 4];
        if !self.started {
            self.from.read_exact(&mut word)?;
            self.started = true;
        }
        (self.at, self.ended) = (0, true);
        self.block.clear();
        match self.from.read_exact(&mut word) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(e) => return Err(e),
        }
        let length = u32::from_le_bytes(word);
        // Incompressible data grows by less than 1/255 (LZ4's documented bound).
        let most = LZ4_BLOCK_BYTES + LZ4_BLOCK_BYTES / 255 + 16;
        let mut packed = Vec::new();
        self.from
            .by_ref()
            .take(u64::from(length).min(most as u64 + 1))
            .read_to_end(&mut packed)?;
        if packed.is_empty() {
            // The four bytes were the appended length.
            return Ok(());
        }
        if packed.len() > most || packed.len() as u64 != u64::from(length) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "an LZ4 block has a wrong length",
            ));
        }
        self.block = lz4_flex::block::decompress(&packed, LZ4_BLOCK_BYTES)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        self.ended = false;
        Ok(())
    }
}

impl<R: Read> Read for Lz4Legacy<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() && !self.ended {
            self.next_block()?;
        }
        let rest = self.block.get(self.at..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use proptest::prelude::*;

    fn lz4(bytes: &[u8]) -> Vec<u8> {
        let mut out = 0x184c_2102_u32.to_le_bytes().to_vec();
        for block in bytes.chunks(LZ4_BLOCK_BYTES) {
            let packed = lz4_flex::block::compress(block);
            out.extend(u32::try_from(packed.len()).unwrap().to_le_bytes());
            out.extend(packed);
        }
        out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        out
    }

    #[test]
    fn every_format_gives_back_what_went_in() {
        let text: Vec<u8> = (0..LZ4_BLOCK_BYTES + 1000)
            .map(|i| u8::try_from(i % 251).unwrap())
            .collect();
        let packed = [
            sample::packed(".gz", &text),
            sample::packed(".xz", &text),
            sample::packed(".zst", &text),
            lz4(&text),
            text.clone(),
        ];
        for packed in packed {
            assert!(
                unpack(&packed, 100 << 20).unwrap() == text,
                "{:?}",
                Compression::of(&packed)
            );
        }
    }

    #[test]
    fn a_small_file_cannot_unpack_without_bound() {
        let bomb = sample::packed(".gz", &vec![0; 1 << 20]);
        assert!(bomb.len() < 8192);
        assert_eq!(
            unpack(&bomb, 1000).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn formats_that_are_only_recognised_say_so() {
        assert_eq!(
            unpack(b"BZh9....", 1000).unwrap_err().kind(),
            io::ErrorKind::Unsupported
        );
    }

    proptest! {
        #[test]
        fn garbage_behind_a_magic_number_never_panics(
            magic in prop::sample::select(vec![&[0x1f, 0x8b, 8][..], b"\xfd7zXZ\0", &[0x5d, 0, 0], &[0x28, 0xb5, 0x2f, 0xfd],
                &[2, 0x21, 0x4c, 0x18]]),
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = unpack(&[magic, &rest].concat(), 1 << 20);
        }
    }
}
