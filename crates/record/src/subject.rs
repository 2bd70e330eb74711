//! What determines a trial: scenario, parameters, variant, arena, memory, swap and seed.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use pagetide_quantity::{Bytes, UnitError};

use crate::cpus::CpusSpec;
use crate::files::{FileSystem, FilesSpec};
use crate::nodes::NodesSpec;
use crate::swap::SwapSpec;
use crate::text::{exact_size, serde_as_text};
use crate::trace_ring::TraceRing;

/// Identification of a kernel: origin, release, version and digests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelId {
    /// Origin of the kernel, as the user named it (`debian:sid`, a path).
    pub source: String,
    /// Release of the kernel (`uname -r`).
    pub release: String,
    /// Version line of the image: release, builder and `uname -v`; in the arena `host`, the text of `/proc/version`.
    pub version: String,
    /// GNU build id of vmlinux in hex; `None` if vmlinux has none.
    pub build_id: Option<String>,
    /// Digest of kernel image, configuration and modules; of a running kernel, its release and build ID.
    pub digest: String,
}

/// A variant to compare: a kernel, boot arguments and settings with a short name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Short name of the variant; the heading of its column in tables.
    pub name: String,
    /// The kernel that the variant boots.
    pub kernel: KernelId,
    /// Kernel command-line arguments of the variant, appended to those of the arena.
    pub boot: Vec<String>,
    /// Kernel settings of the variant by name: `vm.swappiness`, `lru_gen/enabled`, or a path in `/sys` or `/proc/sys`.
    pub settings: BTreeMap<String, String>,
}

/// Kind of arena that a trial runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArenaKind {
    /// An emulator that counts instructions: reproducible bit by bit.
    #[default]
    Exact,
    /// A virtual machine in wall-clock time.
    Vm,
    /// The running kernel inside a memory cgroup.
    Host,
}

impl fmt::Display for ArenaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Exact => "exact",
            Self::Vm => "vm",
            Self::Host => "host",
        })
    }
}

/// The properties of an arena that determine the results of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArenaSpec {
    /// Kind of the arena: exact, virtual machine or host.
    pub kind: ArenaKind,
    /// Name and version of the emulator; empty for the host arena.
    pub emulator: String,
    /// Machine type of the emulator, such as `pc-q35-7.2`; in the host arena, the machine's CPUs and memory.
    pub machine: String,
    /// CPU model of the emulator; in the host arena, of the machine.
    pub cpu: String,
    /// The whole kernel command line.
    pub cmdline: String,
    /// Digest of the guest program; in the host arena, of the program that runs the scenario.
    pub guest: String,
    /// In the host arena, the device of the trial's swap if it is not what the kind of swap says: `loop on vda`, or
    /// `existing zram0` for swap that was on already. Empty otherwise, and in records of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub swap: String,
}

impl ArenaSpec {
    /// CPU model of a virtual machine that uses the processor of its host.
    const CPU_OF_HOST: &str = "host";

    /// Returns true if the guest ran in plain emulation in real time, so that its times say nothing about real ones.
    pub fn is_emulation(&self) -> bool {
        self.kind == ArenaKind::Vm && self.cpu != Self::CPU_OF_HOST
    }

    /// Returns the part of a cell's label that warns of times from plain emulation; empty for all other trials.
    pub fn in_label(&self) -> &'static str {
        if self.is_emulation() {
            " · emulated: no measure of time"
        } else {
            ""
        }
    }
}

/// Memory available to the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemorySpec {
    /// Free memory at the start of the scenario, made equal for all kernels by a locked ballast.
    Free(Bytes),
    /// Total memory of the machine, including memory that the kernel uses itself.
    Total(Bytes),
}

impl MemorySpec {
    /// Returns the size, for both kinds of memory specification.
    pub const fn bytes(self) -> Bytes {
        match self {
            Self::Free(b) | Self::Total(b) => b,
        }
    }
}

impl Default for MemorySpec {
    fn default() -> Self {
        Self::Free(Bytes::from_mib(64))
    }
}

impl fmt::Display for MemorySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free(b) => write!(f, "{}", exact_size(*b)),
            Self::Total(b) => write!(f, "total:{}", exact_size(*b)),
        }
    }
}

impl FromStr for MemorySpec {
    type Err = UnitError;

    /// Parses `160M` or `free:160M` (free at the start), and `total:160M`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.strip_prefix("total:") {
            Some(rest) => rest.parse().map(Self::Total),
            None => text
                .strip_prefix("free:")
                .unwrap_or(text)
                .parse()
                .map(Self::Free),
        }
    }
}

serde_as_text!(MemorySpec);

/// Kind of run of a trial: timed, observed with tracing, or profiled. A subject can have a trial of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    /// Times are measured; nothing is traced.
    #[default]
    Timed,
    /// The trial runs with tracepoints and series; times include the cost of observing.
    Observed,
    /// The emulator counts instructions by function. The guest is the same as in the timed pass, so its times are the
    /// same too.
    Profiled,
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timed => "timed",
            Self::Observed => "observed",
            Self::Profiled => "profiled",
        })
    }
}

/// Everything that determines a trial. In the exact arena, equal subjects give equal results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Name of the scenario.
    pub scenario: String,
    /// True if the scenario runs exactly as its original did, including the original's mistakes.
    pub as_written: bool,
    /// Values of all parameters in canonical text, by the parameter's name.
    pub params: BTreeMap<String, String>,
    /// Seed of the random page references, the start phase and the small ballast.
    pub seed: u64,
    /// The kernel, boot arguments and settings that a comparison varies.
    pub variant: Variant,
    /// The arena in which the trial runs.
    pub arena: ArenaSpec,
    /// Memory available to the workload.
    pub memory: MemorySpec,
    /// Memory nodes of the machine; the default value if it has one node. `memory` is then the sum over the nodes.
    #[serde(default, skip_serializing_if = "NodesSpec::is_default")]
    pub nodes: NodesSpec,
    /// Memory limit of a memory cgroup around the whole workload; `None` if there is no such cgroup. In the host arena,
    /// every workload is in such a cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Bytes>,
    /// Kind of swap of the guest.
    pub swap: SwapSpec,
    /// Total size of all swap devices.
    pub swap_size: Bytes,
    /// Type of the file system and the device on which it is; the default if the trial has no file system.
    #[serde(default, skip_serializing_if = "FilesSpec::is_default")]
    pub files_on: FilesSpec,
    /// CPUs of the machine; one if not stated.
    #[serde(default, skip_serializing_if = "CpusSpec::is_default")]
    pub cpus: CpusSpec,
    /// Kind of pass: timed, observed or profiled.
    pub pass: Pass,
    /// Size of the trace ring buffer of an observed trial; the default for other trials.
    #[serde(default, skip_serializing_if = "TraceRing::is_default")]
    pub trace_ring: TraceRing,
}

impl Subject {
    /// Returns the memory that the workload can use: the limit of its memory cgroup, or all memory without a limit.
    pub fn room(&self) -> Bytes {
        self.limit.unwrap_or(self.memory.bytes())
    }

    /// Returns this subject without the user's names for variant and kernel, which do not affect the result.
    #[must_use]
    pub fn unnamed(&self) -> Self {
        let mut subject = self.clone();
        subject.variant.name = String::new();
        subject.variant.kernel.source = String::new();
        subject
    }

    /// Returns the key of the trial, a hash in hex: equal keys mean the same trial, whatever the variant is called.
    pub fn key(&self) -> String {
        let subject = self.unnamed();
        hex(&Sha256::digest(
            serde_json::to_vec(&subject).unwrap_or_default(),
        ))
    }

    /// Returns the ID of the cell, a hash in hex. It covers what a comparison holds fixed: all of the subject except
    /// variant, seed, kernel command line and guest program.
    pub fn cell(&self) -> String {
        let mut subject = self.clone();
        subject.variant = Variant::default();
        subject.seed = 0;
        // The command line contains the variant's boot arguments, and the guest program may differ between the two
        // sides of a comparison. The reader of the records decides whether those are comparable, with a warning.
        subject.arena.cmdline = String::new();
        subject.arena.guest = String::new();
        hex(&Sha256::digest(
            serde_json::to_vec(&subject).unwrap_or_default(),
        ))
    }

    /// Returns the oldest schema version that can express this subject. It is written into the record, so that an older
    /// program reports that it must be upgraded.
    pub fn schema(&self) -> u32 {
        if !self.cpus.is_default() || !self.nodes.is_default() || self.limit.is_some() {
            return 6;
        }
        if self.swap.has_tiers() || self.pass == Pass::Profiled {
            return 5;
        }
        if self.swap.names_compressor() {
            return 4;
        }
        let newer = matches!(self.swap, SwapSpec::Disk(_))
            || !self.files_on.is_default()
            || !self.trace_ring.is_default();
        match (self.files_on.system, newer) {
            (FileSystem::Xfs | FileSystem::Btrfs | FileSystem::Tmpfs, _) => 3,
            (FileSystem::Ext4, true) => 2,
            (FileSystem::Ext4, false) => 1,
        }
    }

    /// Returns a short label of the cell for users: the scenario and the main choices.
    pub fn cell_label(&self) -> String {
        let written = if self.as_written { " as written" } else { "" };
        // A program is identified by its own name.
        let command = self.params.get("command").map(|command| {
            let word = command.split(' ').next().unwrap_or_default();
            let name = word.rsplit('/').next().unwrap_or_default();
            format!(" {}", name.trim_matches('\''))
        });
        // A described workload is identified by its own name too.
        let case = self.params.get("case").filter(|case| !case.is_empty());
        let own = command.or_else(|| case.map(|case| format!(" {case}")));
        let name = format!("{}{}{written}", self.scenario, own.unwrap_or_default());
        if self.is_imported() {
            return name;
        }
        format!(
            "{name} · {}{} · {}{}{}{}",
            memory_label(self.memory, self.limit),
            self.nodes.beside_memory(),
            self.swap_label(),
            self.files_on.beside_swap(),
            self.cpus.in_label(),
            self.arena.in_label()
        )
    }

    /// Returns what users are told about the trial's swap: its kind, such as `ssd:80us`. The host arena simulates no
    /// disk, so there it is the device that the trial had, such as `loop on vda`.
    pub fn swap_label(&self) -> String {
        if self.arena.kind != ArenaKind::Host {
            return self.swap.to_string();
        }
        if !self.arena.swap.is_empty() {
            return self.arena.swap.clone();
        }
        let simulated = self.swap.on_disk().map(|disk| disk.to_string());
        let kind = self.swap.to_string();
        simulated.map_or(kind.clone(), |disk| kind.replace(&disk, DISK_OF_HOST))
    }

    /// Returns a label of a cell that was made from what was asked for, with the swap of [`Subject::swap_label`].
    #[must_use]
    pub fn with_swap_label(&self, label: &str) -> String {
        let asked = format!(" · {}", self.swap);
        label.replace(&asked, &format!(" · {}", self.swap_label()))
    }

    /// Returns true if the trial was imported from another tool: memory, swap and causes are then unknown.
    pub fn is_imported(&self) -> bool {
        self.arena.machine.starts_with(IMPORTED)
    }
}

/// Returns memory and limit for labels: `64M`, or `64M of 256M` for a limit of 64 MiB on a machine with 256 MiB.
pub fn memory_label(memory: MemorySpec, limit: Option<Bytes>) -> String {
    match limit {
        Some(limit) if limit != memory.bytes() => format!("{} of {memory}", exact_size(limit)),
        _ => memory.to_string(),
    }
}

/// Swap of a host trial on a disk in records that do not name the device.
const DISK_OF_HOST: &str = "this machine's disk";

/// Prefix of the machine name of an imported trial; the name of the origin follows.
pub const IMPORTED: &str = "imported from ";

/// Returns bytes as lower-case hexadecimal text.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SCHEMA;

    const KEY_OF_OLD: &str = "0d26ba8c9bc18f49c4ed148110f67c20484fdb53fcae0be95a438eaafcb62c61";

    #[test]
    fn memory_survives_its_text_form() {
        for text in ["160M", "total:160M", "1000001", "3G"] {
            assert_eq!(text.parse::<MemorySpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn subjects_without_a_disk_are_written_as_ever_and_others_need_a_newer_reader() {
        let plain = Subject::default();
        assert!(!serde_json::to_string(&plain).unwrap().contains("files_on"));
        assert_eq!(plain.schema(), 1);
        let swap = Subject {
            swap: "disk".parse().unwrap(),
            ..Subject::default()
        };
        let files = Subject {
            files_on: "disk:8ms,20MB/s".parse().unwrap(),
            ..Subject::default()
        };
        for subject in [swap, files] {
            assert_eq!(subject.schema(), 2);
            assert_ne!(subject.key(), plain.key());
            assert_ne!(subject.cell(), plain.cell());
            let text = serde_json::to_string(&subject).unwrap();
            assert_eq!(serde_json::from_str::<Subject>(&text).unwrap(), subject);
        }
        let other = Subject {
            files_on: "xfs".parse().unwrap(),
            ..Subject::default()
        };
        assert_eq!(other.schema(), 3);
        for text in ["zram:lz4", "zram:zstd", "zswap"] {
            let compressed = Subject {
                swap: text.parse().unwrap(),
                ..Subject::default()
            };
            assert_eq!(compressed.schema(), 4);
            assert_ne!(compressed.key(), plain.key());
            assert_ne!(compressed.cell(), plain.cell());
        }
        let tiers = Subject {
            swap: "zram:8M@100,ssd@10".parse().unwrap(),
            ..Subject::default()
        };
        assert_eq!(tiers.schema(), 5);
        let text = serde_json::to_string(&tiers).unwrap();
        assert_eq!(serde_json::from_str::<Subject>(&text).unwrap(), tiers);
    }

    #[test]
    fn trials_on_the_host_name_their_swap_and_old_records_claim_no_latency() {
        let mut subject = Subject {
            scenario: "linear".to_owned(),
            swap: "ssd".parse().unwrap(),
            ..Subject::default()
        };
        assert_eq!(subject.cell_label(), "linear · 64M · ssd:80us");
        let label = "linear pages=9 · 64M · ssd:80us";
        assert_eq!(subject.with_swap_label(label), label);
        subject.arena.kind = ArenaKind::Host;
        let old = subject.cell();
        assert!(
            !serde_json::to_string(&subject)
                .unwrap()
                .contains(r#""swap":"""#)
        );
        assert_eq!(subject.cell_label(), "linear · 64M · this machine's disk");
        subject.arena.swap = "loop on vda".to_owned();
        assert_ne!(subject.cell(), old);
        assert_eq!(subject.cell_label(), "linear · 64M · loop on vda");
        assert_eq!(
            subject.with_swap_label(label),
            "linear pages=9 · 64M · loop on vda"
        );
        subject.arena.swap = String::new();
        subject.swap = "zswap:lzo+ssd".parse().unwrap();
        assert_eq!(subject.swap_label(), "zswap:lzo+this machine's disk");
        subject.swap = "zram:lz4".parse().unwrap();
        assert_eq!(subject.swap_label(), "zram:lz4");
    }

    #[test]
    fn a_profiled_pass_is_another_trial_that_needs_a_newer_reader() {
        let timed = Subject::default();
        let profiled = Subject {
            pass: Pass::Profiled,
            ..Subject::default()
        };
        assert_eq!(profiled.schema(), 5);
        assert_ne!(profiled.key(), timed.key());
    }

    #[test]
    fn a_machine_with_nodes_is_another_trial_and_one_node_is_written_as_ever() {
        let plain = Subject::default();
        assert!(!serde_json::to_string(&plain).unwrap().contains("nodes"));
        let nodes = Subject {
            nodes: "64M,256M:slow".parse().unwrap(),
            ..Subject::default()
        };
        assert_eq!(nodes.schema(), SCHEMA);
        assert_ne!(nodes.key(), plain.key());
        assert_ne!(nodes.cell(), plain.cell());
        let text = serde_json::to_string(&nodes).unwrap();
        assert!(text.contains(r#""nodes":"64M,256M:slow""#), "{text}");
        assert_eq!(serde_json::from_str::<Subject>(&text).unwrap(), nodes);
    }

    #[test]
    fn a_limit_is_another_trial_of_another_cell_that_needs_the_newest_reader() {
        let plain = Subject::default();
        let limited = Subject {
            limit: Some(Bytes::from_mib(16)),
            ..Subject::default()
        };
        assert!(!serde_json::to_string(&plain).unwrap().contains("limit"));
        assert_eq!(limited.schema(), SCHEMA);
        assert_ne!(limited.key(), plain.key());
        assert_ne!(limited.cell(), plain.cell());
        assert_eq!((plain.room().0, limited.room().0), (64 << 20, 16 << 20));
        assert!(limited.cell_label().contains("16M of 64M"));
        let text = serde_json::to_string(&limited).unwrap();
        assert_eq!(serde_json::from_str::<Subject>(&text).unwrap(), limited);
    }

    #[test]
    fn several_cpus_are_another_cell_and_one_is_written_as_ever() {
        let one = Subject::default();
        assert!(!serde_json::to_string(&one).unwrap().contains("cpus"));
        let four = Subject {
            cpus: CpusSpec::of(4),
            ..Subject::default()
        };
        assert_eq!(four.schema(), SCHEMA);
        assert_ne!(four.key(), one.key());
        assert_ne!(four.cell(), one.cell());
        assert!(four.cell_label().ends_with(" · 4 CPUs"));
        let text = serde_json::to_string(&four).unwrap();
        assert!(text.contains(r#""cpus":"4:5us""#), "{text}");
        assert_eq!(serde_json::from_str::<Subject>(&text).unwrap(), four);
    }

    #[test]
    fn plain_zram_is_written_and_known_as_ever() {
        let plain = Subject::default();
        assert!(
            serde_json::to_string(&plain)
                .unwrap()
                .contains(r#""swap":"zram""#)
        );
        // This is the key from the version before compressors could be named.
        assert_eq!(plain.key(), KEY_OF_OLD);
    }

    #[test]
    fn a_variant_of_another_name_is_the_same_trial_but_another_seed_is_not() {
        let a = Subject {
            scenario: "linear".into(),
            seed: 1,
            ..Subject::default()
        };
        let mut b = a.clone();
        b.variant.name = "b".into();
        assert_eq!(a.key(), b.key());
        b.seed = 2;
        assert_ne!(a.key(), b.key());
        assert_eq!(a.cell(), b.cell());
    }
}
