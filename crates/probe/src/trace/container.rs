//! A whole trace: formats and raw buffers together, decodable later without the kernel they came from.

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
}
