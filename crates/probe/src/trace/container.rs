//! A stored trace: formats and raw buffers together, decodable later without the kernel they came from.
//!
//! Layout: the magic `PGTDTRC1`, the length of the description as 32 bits and the description as JSON, then for each CPU its
//! number (32 bits), the length (64 bits) and its packed sub-buffers; all of it one zstd frame with checksum. Numbers are
//! little-endian.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use super::format::{EventFormat, PageLayout};
use super::instance::SLEEP_STACK;
use super::merge::Merge;
use super::stack::Function;
use super::subbuffer::{CpuReader, Losses, Stride};
use crate::ProbeError;
use pagetide_quantity::Nanos;

/// An event's format as the kernel wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFormat {
    /// `vmscan`, ….
    pub system: String,
    /// `mm_vmscan_lru_isolate`, ….
    pub name: String,
    /// The whole `format` file.
    pub text: String,
}

/// What a trace is, besides its events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMeta {
    /// `uname -r` of the kernel that wrote it.
    pub kernel_release: String,
    /// The trace clock: `mono`, `mono_raw`, ….
    pub clock: String,
    /// How sub-buffers begin.
    pub layout: PageLayout,
    /// Formats of the events that were enabled.
    pub formats: Vec<StoredFormat>,
    /// Events that were asked for and that this kernel does not have, as `system/name`.
    pub absent: Vec<String>,
    /// `/sys/kernel/mm/lru_gen/enabled`; `None` on kernels without the multi-generational LRU.
    pub lru_gen: Option<u64>,
    /// Tasks known by name, kswapd among them: their numbers and names.
    pub tasks: Vec<(u32, String)>,
    /// Swap areas that are devices of their own, as numbers in the events' form (major times 2^20 plus minor).
    #[serde(default)]
    pub swap_devices: Vec<u64>,
    /// Kernel functions of the stacks in it: addresses as they stand there, and names. Empty where no stacks were recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
    /// When tracing went on, on the trace's clock (0 where unknown).
    pub begin: Nanos,
    /// When it went off.
    pub end: Nanos,
    /// What the kernel's own statistics and the reading missed, beyond what the buffers themselves tell.
    pub losses: Losses,
}

impl TraceMeta {
    /// Whether reclaim used generations instead of active and inactive lists.
    pub fn multi_generational(&self) -> bool {
        self.lru_gen.is_some_and(|enabled| enabled & 1 == 1)
    }

    /// Whether stacks of sleeping tasks were recorded.
    pub fn records_stacks(&self) -> bool {
        self.formats.iter().any(|format| {
            (format.system.as_str(), format.name.as_str()) == (SLEEP_STACK.system, SLEEP_STACK.name)
        })
    }

    /// A task's name, if it is known.
    pub fn task(&self, pid: u32) -> Option<&str> {
        self.tasks
            .iter()
            .find(|(known, _)| *known == pid)
            .map(|(_, name)| name.as_str())
    }
}

/// One CPU's events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuBuffer {
    /// The CPU.
    pub cpu: u32,
    /// Packed sub-buffers.
    pub bytes: Vec<u8>,
}

/// A whole trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFile {
    /// What it is.
    pub meta: TraceMeta,
    /// Its events.
    pub cpus: Vec<CpuBuffer>,
}

const MAGIC: &[u8; 8] = b"PGTDTRC1";
/// A description lists formats and tasks: a few MiB at the most.
const LARGEST_META_BYTES: u32 = 64 << 20;
/// Compression: events are alike, so that the fastest level already takes most of it.
const ZSTD_LEVEL: i32 = 3;

impl TraceFile {
    /// The events of all CPUs by time.
    pub fn events(&self) -> Merge<'_> {
        Merge::new(self.cpus.iter().map(|buffer| {
            CpuReader::new(buffer.cpu, &buffer.bytes, self.meta.layout, Stride::Packed)
        }))
    }

    /// The formats, parsed. One that cannot be understood is an error: rows would silently be missing.
    pub fn formats(&self) -> Result<Vec<EventFormat>, ProbeError> {
        self.meta
            .formats
            .iter()
            .map(|stored| EventFormat::parse(&stored.system, &stored.text))
            .collect()
    }

    /// Bytes of raw events.
    pub fn size(&self) -> usize {
        self.cpus.iter().map(|buffer| buffer.bytes.len()).sum()
    }

    /// Writes the trace, compressed.
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

    /// Reads a trace written by [`Self::write`]; one that is cut off or damaged is refused.
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
            // Grows with what is really there: a false length cannot make it allocate.
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
