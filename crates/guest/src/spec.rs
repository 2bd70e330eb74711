//! What a guest is told, by the initial file system and by the emulator.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{FilesSpec, Subject, SwapSpec};
use serde::{Deserialize, Serialize};

/// Path of the [`BootSpec`] in the initial file system.
pub const BOOT_SPEC: &str = "/pagetide.json";
/// Name of the emulator's configuration item that holds the [`Order`].
pub const TRIAL_ITEM: &str = "opt/pagetide/trial";
/// Where the guest mounts the file system on the simulated disk.
pub const MOUNT_POINT: &str = "/mnt/pagetide";

/// Folder in the initial file system with the program that makes the file system.
pub const MAKER_FOLDER: &str = "/maker";
/// Name of its loader there.
pub const MAKER_LOADER: &str = "loader";

/// A kernel module to load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleSpec {
    /// Name of the module.
    pub name: String,
    /// File in the initial file system.
    pub file: String,
    /// Parameters.
    pub params: String,
}

/// The simulated solid-state disks of a trial: the first is swapped to, if the trial does; another holds the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SsdSpec {
    /// How many are alike.
    pub devices: u32,
    /// Size of each, at least.
    pub size: Bytes,
    /// Time from a request to its completion.
    pub latency: Nanos,
    /// The latency of one more, after them, that is not alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Nanos>,
}

/// A program that makes a file system. It lies with its loader and libraries in [`MAKER_FOLDER`] of the initial file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MakerSpec {
    /// The package that it is of, with its version.
    pub package: String,
    /// Digest of the packages that it and its libraries are of.
    pub digest: String,
    /// Its name and its options; the device follows.
    pub words: Vec<String>,
}

/// What a snapshot depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootSpec {
    /// Physical address of the output region.
    pub region_at: u64,
    /// Size of the output region.
    pub region_size: u64,
    /// Physical address of the memory that takes the trace of an observed trial.
    pub trace_at: u64,
    /// Its size.
    pub trace_size: u64,
    /// Memory reserved for the observer of an observed trial.
    pub spare: Bytes,
    /// Modules in the order they are loaded.
    pub modules: Vec<ModuleSpec>,
    /// Simulated solid-state disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssd: Option<SsdSpec>,
    /// What to swap to.
    pub swap: SwapSpec,
    /// Size of the swap device.
    pub swap_size: Bytes,
    /// Compressor of zram or zswap.
    pub compressor: String,
    /// Size of the file system, on a simulated disk of its own, if the scenario needs one.
    pub filesystem: Option<Bytes>,
    /// Which it is, and what that disk is.
    #[serde(default, skip_serializing_if = "FilesSpec::is_default")]
    pub files_on: FilesSpec,
    /// The root of a program, by its digest: that file system is its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The program that makes the file system in the guest, where it does not come as an image: what it is of, and its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<MakerSpec>,
    /// Memory to be free at the start; `None` leaves it as it is.
    pub free: Option<Bytes>,
    /// Size of the machine that watermarks are made to match.
    pub intended: Bytes,
}

/// What differs from trial to trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// What determines the trial, [without names](Subject::unnamed), because a longer name would take longer to read.
    pub subject: Subject,
    /// Settings to apply: those of the variant, and those that the scenario needs and the variant does not set.
    pub settings: BTreeMap<String, String>,
    /// Bulk input within the output region: offset and length.
    pub data: Option<(u64, u64)>,
    /// Give up after this much virtual time without progress.
    pub hang_after: Nanos,
}
