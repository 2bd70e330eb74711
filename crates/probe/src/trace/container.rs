//! A whole trace: formats and raw buffers together. It can be decoded later, without the kernel that recorded it.

use serde::{Deserialize, Serialize};

use super::event_name::SLEEP_STACK;
use super::format::{EventFormat, PageLayout};
use super::merge::Merge;
use super::subbuffer::{CpuReader, Losses, Stride};
use crate::ProbeError;
use pagetide_quantity::Nanos;

/// Format of an event, as the kernel printed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFormat {
    /// Name of the subsystem, such as `vmscan`.
    pub system: String,
    /// Name of the event, such as `mm_vmscan_lru_isolate`.
    pub name: String,
    /// Text of the whole `format` file.
    pub text: String,
}

/// Everything about a trace except its events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMeta {
    /// Release (`uname -r`) of the kernel that recorded the trace.
    pub kernel_release: String,
    /// Name of the trace clock: `mono`, `mono_raw`, ….
    pub clock: String,
    /// Layout of the sub-buffers.
    pub layout: PageLayout,
    /// Formats of the enabled events, as the kernel printed them.
    pub formats: Vec<StoredFormat>,
    /// Requested events that this kernel does not have, as `system/name`.
    pub absent: Vec<String>,
    /// Value of `/sys/kernel/mm/lru_gen/enabled`; `None` on kernels without the multi-generational LRU.
    pub lru_gen: Option<u64>,
    /// Thread ID and name of each known task, including kswapd.
    pub tasks: Vec<(u32, String)>,
    /// Swap areas that are whole devices, as device numbers in the encoding of events (major times 2^20 plus minor).
    #[serde(default)]
    pub swap_devices: Vec<u64>,
    /// Kernel functions in the recorded stacks, each with the recorded address and its name. Empty if no stacks were
    /// recorded or the names could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
    /// Time at which recording started, on the trace's clock; 0 if unknown.
    pub begin: Nanos,
    /// Time at which recording stopped, on the trace's clock; 0 if unknown.
    pub end: Nanos,
    /// Losses according to the kernel's statistics and the reader, without those visible in the buffers.
    pub losses: Losses,
}

impl TraceMeta {
    /// Returns true if the multi-generational LRU was enabled.
    pub fn multi_generational(&self) -> bool {
        self.lru_gen.is_some_and(|enabled| enabled & 1 == 1)
    }

    /// Returns true if stacks of sleeping tasks were recorded.
    pub fn records_stacks(&self) -> bool {
        self.formats.iter().any(|format| {
            (format.system.as_str(), format.name.as_str()) == (SLEEP_STACK.system, SLEEP_STACK.name)
        })
    }

    /// Returns the name of the task with this thread ID; `None` if unknown.
    pub fn task(&self, pid: u32) -> Option<&str> {
        self.tasks
            .iter()
            .find(|(known, _)| *known == pid)
            .map(|(_, name)| name.as_str())
    }
}

/// The recorded events of one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuBuffer {
    /// Number of the CPU.
    pub cpu: u32,
    /// Packed sub-buffers of the CPU, concatenated.
    pub bytes: Vec<u8>,
}

/// A whole trace: its description and its raw events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFile {
    /// Everything about the trace except its events.
    pub meta: TraceMeta,
    /// The recorded events of each CPU.
    pub cpus: Vec<CpuBuffer>,
}

impl TraceFile {
    /// Returns the events of all CPUs in order of time.
    pub fn events(&self) -> Merge<'_> {
        Merge::new(self.cpus.iter().map(|buffer| {
            CpuReader::new(buffer.cpu, &buffer.bytes, self.meta.layout, Stride::Packed)
        }))
    }

    /// Parses the formats of the events. Fails if a format cannot be parsed, because rows would be missing without
    /// notice.
    pub fn formats(&self) -> Result<Vec<EventFormat>, ProbeError> {
        self.meta
            .formats
            .iter()
            .map(|stored| EventFormat::parse(&stored.system, &stored.text))
            .collect()
    }

    /// Returns the total size of the raw events in bytes.
    pub fn size(&self) -> usize {
        self.cpus.iter().map(|buffer| buffer.bytes.len()).sum()
    }
}

/// A kernel function in a recorded stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// An address within the function, as recorded in a stack.
    pub address: u64,
    /// Name of the function.
    pub name: String,
}
