//! The file format of a stored trace.
//!
//! Layout: the magic `PGTDTRC1`, the length of the description (32 bits) and the description as JSON. Then for each
//! CPU: its number (32 bits), a length (64 bits) and its packed sub-buffers. The whole file is one zstd frame with a
//! checksum. Numbers are little-endian.

use std::io::{Read, Write};

use super::container::{CpuBuffer, TraceFile, TraceMeta};
use super::format::PageLayout;
use crate::ProbeError;

const MAGIC: &[u8; 8] = b"PGTDTRC1";
/// Upper limit for the size of a description in bytes. It contains formats and tasks, a few MiB in practice.
const LARGEST_META_BYTES: u32 = 64 << 20;
/// Compression level of zstd. A low level is enough, because events are similar to each other.
const ZSTD_LEVEL: i32 = 3;

impl TraceFile {
    /// Writes the trace in compressed form. Fails if writing fails.
    pub fn write(&self, out: impl Write) -> Result<(), ProbeError> {
        let wrong = |error| ProbeError::io("write", "the stored trace", error);
        let mut out = zstd::Encoder::new(out, ZSTD_LEVEL).map_err(wrong)?;
        out.include_checksum(true).map_err(wrong)?;
        let meta = serde_json::to_vec(&self.meta)
            .map_err(|error| ProbeError::malformed("a trace's description", error.to_string()))?;
        let length = u32::try_from(meta.len()).map_err(|_| {
            ProbeError::malformed("a trace's description", "it is longer than 4 GiB")
        })?;
        let mut all = || -> std::io::Result<()> {
            out.write_all(MAGIC)?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(&meta)?;
            for buffer in &self.cpus {
                out.write_all(&buffer.cpu.to_le_bytes())?;
                out.write_all(&(buffer.bytes.len() as u64).to_le_bytes())?;
                out.write_all(&buffer.bytes)?;
            }
            Ok(())
        };
        all().map_err(wrong)?;
        out.finish().map_err(wrong)?;
        Ok(())
    }

    /// Reads a trace written by [`Self::write`]. Fails if it is truncated or damaged.
    pub fn read(input: impl Read) -> Result<Self, ProbeError> {
        let wrong = |error| ProbeError::io("read", "the stored trace", error);
        let cut = || ProbeError::malformed("a stored trace", "it is cut off");
        let mut input = zstd::Decoder::new(input).map_err(wrong)?;
        let mut magic = [0; 8];
        input.read_exact(&mut magic).map_err(|_| cut())?;
        if &magic != MAGIC {
            return Err(ProbeError::malformed(
                "a stored trace",
                "it does not begin with PGTDTRC1",
            ));
        }
        let mut word = [0; 4];
        input.read_exact(&mut word).map_err(|_| cut())?;
        let length = u32::from_le_bytes(word);
        if length > LARGEST_META_BYTES {
            return Err(ProbeError::malformed(
                "a stored trace",
                format!("its description claims {length} bytes"),
            ));
        }
        let mut meta = Vec::new();
        let read = (&mut input)
            .take(u64::from(length))
            .read_to_end(&mut meta)
            .map_err(wrong)?;
        if u32::try_from(read) != Ok(length) {
            return Err(cut());
        }
        let meta: TraceMeta = serde_json::from_slice(&meta)
            .map_err(|error| ProbeError::malformed("a trace's description", error.to_string()))?;
        let PageLayout {
            commit_size, data, ..
        } = meta.layout;
        if !(12..=4096).contains(&data) || !matches!(commit_size, 4 | 8) {
            return Err(ProbeError::malformed(
                "a trace's description",
                "its page layout is none that a kernel has",
            ));
        }
        let mut cpus = Vec::new();
        loop {
            let mut first = [0; 1];
            match input.read(&mut first).map_err(wrong)? {
                0 => break,
                _ => word[0] = first[0],
            }
            input.read_exact(&mut word[1..]).map_err(|_| cut())?;
            let mut length = [0; 8];
            input.read_exact(&mut length).map_err(|_| cut())?;
            let length = u64::from_le_bytes(length);
            // The vector grows with the data actually read, so a false length cannot make it allocate.
            let mut bytes = Vec::new();
            let read = (&mut input).take(length).read_to_end(&mut bytes);
            if u64::try_from(read.map_err(wrong)?) != Ok(length) {
                return Err(cut());
            }
            cpus.push(CpuBuffer {
                cpu: u32::from_le_bytes(word),
                bytes,
            });
        }
        Ok(Self { meta, cpus })
    }
}

#[cfg(test)]
mod tests {
    use super::super::subbuffer::tests::PageBuilder;
    use super::*;

    fn sample() -> TraceFile {
        let page = |start| {
            PageBuilder::default()
                .event(1, &[1, 0, 0, 0])
                .packed(start, 0)
        };
        TraceFile {
            meta: TraceMeta {
                kernel_release: "6.18.0".into(),
                clock: "mono".into(),
                lru_gen: Some(7),
                tasks: vec![(40, "kswapd0".into())],
                ..TraceMeta::default()
            },
            cpus: vec![
                CpuBuffer {
                    cpu: 0,
                    bytes: page(100),
                },
                CpuBuffer {
                    cpu: 5,
                    bytes: page(50),
                },
            ],
        }
    }

    #[test]
    fn a_trace_comes_back_as_it_was_written() {
        let trace = sample();
        let mut bytes = Vec::new();
        trace.write(&mut bytes).unwrap();
        let again = TraceFile::read(&bytes[..]).unwrap();
        assert_eq!(again, trace);
        assert!(again.meta.multi_generational());
        assert_eq!(again.meta.task(40), Some("kswapd0"));
        let cpus: Vec<_> = again.events().map(|event| event.cpu).collect();
        assert_eq!(cpus, [5, 0]);
    }

    #[test]
    fn a_cut_or_altered_trace_is_refused() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes).unwrap();
        for length in 0..bytes.len() {
            assert!(TraceFile::read(&bytes[..length]).is_err(), "{length}");
        }
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        assert!(TraceFile::read(&bytes[..]).is_err());
    }
}
