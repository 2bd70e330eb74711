//! The specifications that a guest receives, through the initial file system and from the emulator.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{CpusSpec, FilesSpec, NodesSpec, Subject, SwapSpec};
use serde::{Deserialize, Serialize};

/// Path of the [`BootSpec`] in the initial file system.
pub const BOOT_SPEC: &str = "/pagetide.json";
/// Name of the emulator's configuration item with the [`Order`].
pub const TRIAL_ITEM: &str = "opt/pagetide/trial";
/// Mount point of the trial's file system: a tmpfs, or on a simulated disk.
pub const MOUNT_POINT: &str = "/mnt/pagetide";

/// Folder in the initial file system with the program that creates the file system.
pub const MAKER_FOLDER: &str = "/maker";
/// Name of the dynamic loader in [`MAKER_FOLDER`].
pub const MAKER_LOADER: &str = "loader";

/// A kernel module that the guest loads, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleSpec {
    /// Name of the module.
    pub name: String,
    /// Path of the module's file in the initial file system.
    pub file: String,
    /// Parameters of the module, as for `insmod`.
    pub params: String,
}

/// Simulated solid-state disks of a trial. The first is the swap device if the trial swaps to one; another holds the
/// files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SsdSpec {
    /// Number of disks that have the latency `latency`.
    pub devices: u32,
    /// Minimum size of each disk.
    pub size: Bytes,
    /// Latency of these disks: time from a request to its completion.
    pub latency: Nanos,
    /// Latency of one additional disk, which follows the others; `None` for no additional disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Nanos>,
}

/// A program that creates a file system. It is stored with its loader and libraries in [`MAKER_FOLDER`] of the initial
/// file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MakerSpec {
    /// Name and version of the package that contains the program.
    pub package: String,
    /// Digest of the packages that contain the program and its libraries.
    pub digest: String,
    /// Name and options of the program. The device is appended as the last argument.
    pub words: Vec<String>,
}

/// The specification on which a snapshot of the booted guest depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootSpec {
    /// Physical address of the output region.
    pub region_at: u64,
    /// Size of the output region in bytes.
    pub region_size: u64,
    /// Physical address of the trace area for an observed trial.
    pub trace_at: u64,
    /// Size of the trace area in bytes.
    pub trace_size: u64,
    /// Memory reserved for the observer of an observed trial.
    pub spare: Bytes,
    /// Kernel modules in the order in which they are loaded.
    pub modules: Vec<ModuleSpec>,
    /// True if time passes as on the host, instead of by instructions. The CPU then halts when it is idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub real_time: bool,
    /// Simulated solid-state disks; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssd: Option<SsdSpec>,
    /// Memory nodes of the machine; the default value is a machine with one node.
    #[serde(default, skip_serializing_if = "NodesSpec::is_default")]
    pub nodes: NodesSpec,
    /// Kind of swap of the guest.
    pub swap: SwapSpec,
    /// Total size of all swap devices.
    pub swap_size: Bytes,
    /// Compressor of zram or zswap.
    pub compressor: String,
    /// Size of the trial's file system; `None` if the scenario needs no file system.
    pub filesystem: Option<Bytes>,
    /// Type of the file system, and the disk on which it is.
    #[serde(default, skip_serializing_if = "FilesSpec::is_default")]
    pub files_on: FilesSpec,
    /// Digest of a program's root that is in the file system; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The program that creates the file system in the guest; `None` if the file system comes as an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<MakerSpec>,
    /// Number of CPUs of the machine, and length of their turns.
    #[serde(default, skip_serializing_if = "CpusSpec::is_default")]
    pub cpus: CpusSpec,
    /// Amount of free memory at the start of the scenario; `None` to leave free memory unchanged.
    pub free: Option<Bytes>,
    /// Size of the machine from which the first watermarks are computed. New watermarks replace them after the arena
    /// has allocated its own memory.
    pub intended: Bytes,
}

/// The specification that differs between trials from the same snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The subject of the trial, [without names](Subject::unnamed), because a longer name would take longer to read.
    pub subject: Subject,
    /// Settings to apply: those of the variant, and the scenario's own settings that the variant does not set.
    pub settings: BTreeMap<String, String>,
    /// Offset and length of the bulk input in the output region; `None` without bulk input.
    pub data: Option<(u64, u64)>,
    /// Time without progress, on the guest's monotonic clock, after which the trial is ended as hung.
    pub hang_after: Nanos,
}
