//! A whole trace: formats and raw buffers together, which can be decoded later without the kernel that wrote them.

use serde::{Deserialize, Serialize};

use super::format::{EventFormat, PageLayout};
use super::instance::SLEEP_STACK;
use super::merge::Merge;
use super::stack::Function;
use super::subbuffer::{CpuReader, Losses, Stride};
use crate::ProbeError;
use pagetide_quantity::Nanos;

/// Format of an event, as the kernel printed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFormat {
    /// The subsystem, such as `vmscan`.
    pub system: String,
    /// The event, such as `mm_vmscan_lru_isolate`.
    pub name: String,
    /// The whole `format` file.
    pub text: String,
}

/// Everything about a trace except its events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMeta {
    /// `uname -r` of the kernel that wrote it.
    pub kernel_release: String,
    /// The trace clock: `mono`, `mono_raw`, ….
    pub clock: String,
    /// Layout of sub-buffers.
    pub layout: PageLayout,
    /// Formats of the enabled events.
    pub formats: Vec<StoredFormat>,
    /// Requested events that this kernel does not have, as `system/name`.
    pub absent: Vec<String>,
    /// `/sys/kernel/mm/lru_gen/enabled`; `None` on kernels without the multi-generational LRU.
    pub lru_gen: Option<u64>,
    /// Thread ID and name of known tasks, including kswapd.
    pub tasks: Vec<(u32, String)>,
    /// Swap areas that are whole devices, as device numbers in the encoding of events (major times 2^20 plus minor).
    #[serde(default)]
    pub swap_devices: Vec<u64>,
    /// Kernel functions in the recorded stacks: addresses as recorded, and names. Empty if no stacks were recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
    /// When recording started, on the trace's clock (0 if unknown).
    pub begin: Nanos,
    /// When recording stopped.
    pub end: Nanos,
    /// Losses according to the kernel's statistics and the reader, in addition to those visible in the buffers.
    pub losses: Losses,
}

impl TraceMeta {
    /// True if the multi-generational LRU was enabled.
    pub fn multi_generational(&self) -> bool {
        self.lru_gen.is_some_and(|enabled| enabled & 1 == 1)
    }

    /// True if stacks of sleeping tasks were recorded.
    pub fn records_stacks(&self) -> bool {
        self.formats.iter().any(|format| {
            (format.system.as_str(), format.name.as_str()) == (SLEEP_STACK.system, SLEEP_STACK.name)
        })
    }

    /// Name of a task, if known.
    pub fn task(&self, pid: u32) -> Option<&str> {
        self.tasks
            .iter()
            .find(|(known, _)| *known == pid)
            .map(|(_, name)| name.as_str())
    }
}

/// Events of one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuBuffer {
    /// The CPU.
    pub cpu: u32,
    /// Packed sub-buffers, concatenated.
    pub bytes: Vec<u8>,
}

/// A whole trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFile {
    /// Everything except the events.
    pub meta: TraceMeta,
    /// The events of each CPU.
    pub cpus: Vec<CpuBuffer>,
}

impl TraceFile {
    /// The events of all CPUs in order of time.
    pub fn events(&self) -> Merge<'_> {
        Merge::new(self.cpus.iter().map(|buffer| {
            CpuReader::new(buffer.cpu, &buffer.bytes, self.meta.layout, Stride::Packed)
        }))
    }

    /// Parses the formats. Fails if one cannot be parsed, because rows would silently be missing.
    pub fn formats(&self) -> Result<Vec<EventFormat>, ProbeError> {
        self.meta
            .formats
            .iter()
            .map(|stored| EventFormat::parse(&stored.system, &stored.text))
            .collect()
    }

    /// Total size of the raw events in bytes.
    pub fn size(&self) -> usize {
        self.cpus.iter().map(|buffer| buffer.bytes.len()).sum()
    }
}
