//! The space of a hunt: everything that may vary. It is read from a space file.
//!
//! ```toml
//! memory = ["16M"]
//! swap = ["zram", "ssd", "none"]
//! processes = 3
//! phases = ["fill", "access", "advise"]
//!
//! [settings]
//! "lru_gen/enabled" = ["0"]
//! "vm.swappiness" = ["default", "1", "200"]
//! ```
//!
//! Keys that a file leaves out have the values of the default space. A key with a list of one value does not vary.

use std::collections::BTreeMap;

use pagetide_arena::VariantSpec;
use pagetide_campaign::Adjustment;
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{FileSystem, FilesOn, MemorySpec, SwapSpec};
use pagetide_reference::Pattern;
use pagetide_workload::{Advice, Kind, MAX_ACCESSES, Size, Workload};
use serde::{Deserialize, Serialize};

/// Word that stands for "do not set this setting", so that the kernel's own value applies.
pub const DEFAULT: &str = "default";
/// Words of the phases that a hunt uses. The words are those of a workload's text.
pub const PHASES: [&str; 9] = [
    "fill", "access", "copy", "sync", "advise", "fork", "repeat", "pause", "reclaim",
];
/// Upper bound of [`Extent::processes`].
pub(crate) const MAX_PROCESSES: usize = 16;
/// Upper bound of [`Extent::segments`].
pub(crate) const MAX_SEGMENTS: usize = 8;
/// Upper bound of [`Extent::groups`].
pub(crate) const MAX_GROUPS: usize = 16;

/// Everything that may vary. Simplification takes the first kind of swap, device for files and file system as the
/// simplest, and the first value of a setting that cannot be left unset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Extent {
    /// Sizes of the machine's memory. Each size needs a guest of its own.
    pub memory: Vec<MemorySpec>,
    /// Kinds of swap. Each kind needs a guest of its own.
    pub swap: Vec<SwapSpec>,
    /// Size of swap, as a multiple of memory.
    pub swap_size: u64,
    /// Devices on which files may lie. Each device needs a guest of its own.
    pub files_on: Vec<FilesOn>,
    /// File systems for the workload's files. Each needs a guest of its own.
    pub fs: Vec<FileSystem>,
    /// Values of each setting. [`DEFAULT`] means that the setting is not set.
    pub settings: BTreeMap<String, Vec<String>>,
    /// Maximum number of processes with phases of their own.
    pub processes: usize,
    /// Maximum number of copies of a process; all copies have the same phases.
    pub copies: u32,
    /// Maximum number of memory cgroups.
    pub groups: usize,
    /// Maximum number of segments (parts of memory) of a process.
    pub segments: usize,
    /// Maximum number of phases of a process when it is drawn or a phase is inserted. Phases within phases and the fill
    /// of an added segment may exceed it.
    pub length: usize,
    /// Kinds of segments, such as anonymous memory or a file.
    pub kinds: Vec<Kind>,
    /// Sizes of segments, of limits and protections of memory cgroups, and of requests to reclaim.
    pub sizes: Vec<Size>,
    /// Contents that pages of a segment may have: a fraction to which they compress, or a name such as `redis`.
    pub contents: Vec<String>,
    /// True if segments may use huge pages.
    pub huge_pages: bool,
    /// True if segments may be locked in memory.
    pub locked: bool,
    /// Words of the phases that may occur.
    pub phases: Vec<String>,
    /// Patterns of accesses.
    pub patterns: Vec<Pattern>,
    /// Kinds of advice (`madvise`).
    pub advice: Vec<Advice>,
    /// Maximum number of accesses of a workload, divided by the number of pages of memory.
    pub accesses: u64,
    /// Time limit of a workload, in the guest's time.
    #[serde(with = "time")]
    pub time_limit: Nanos,
    /// Workloads from which the hunt starts, besides random ones. They must be valid, but may lie outside the other
    /// bounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<Workload>,
}

impl Default for Extent {
    fn default() -> Self {
        let settings = [
            ("lru_gen/enabled", &[DEFAULT, "7", "0"][..]),
            ("vm.swappiness", &[DEFAULT, "1", "100", "200"]),
            ("vm.page-cluster", &[DEFAULT, "0"]),
            ("vm.watermark_scale_factor", &[DEFAULT, "200"]),
        ];
        let settings = settings.into_iter().map(|(name, values)| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            (name.to_owned(), values)
        });
        Self {
            memory: vec![MemorySpec::Free(Bytes::from_mib(16))],
            swap: parsed(&["zram", "ssd", "none"]),
            swap_size: 2,
            files_on: parsed(&["ssd"]),
            fs: vec![FileSystem::default()],
            settings: settings.collect(),
            processes: 3,
            copies: 8,
            groups: 2,
            segments: 3,
            length: 6,
            kinds: Kind::ALL.to_vec(),
            sizes: [50, 5, 10, 20, 30, 40, 60, 70, 80, 90, 100, 120, 150, 200]
                .map(Size::percent)
                .to_vec(),
            contents: ["0.35", "0.05", "0.7", "redis"].map(str::to_owned).to_vec(),
            huge_pages: true,
            locked: true,
            phases: PHASES.map(str::to_owned).to_vec(),
            patterns: parsed(&[
                "linear",
                "random",
                "loop",
                "zipf(0.9)",
                "zipf05",
                "smooth-sin",
                "smooth-sin-random",
                "lognormal",
                "hot-cold",
                "cold-first",
                "scan-with-hot-core",
            ]),
            advice: Advice::ALL.to_vec(),
            accesses: 10,
            time_limit: Nanos::from_secs(4),
            start: Vec::new(),
        }
    }
}

/// Parses texts that are known to be valid; invalid texts are left out.
fn parsed<T: std::str::FromStr>(texts: &[&str]) -> Vec<T> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Why a space file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ExtentError {
    /// The file is not TOML, or has a key or value that is not known.
    #[error("the space cannot be read{}: {why}", .line.map(|line| format!(" at line {line}")).unwrap_or_default())]
    Text {
        /// Number of the line, counted from 1; `None` if unknown.
        line: Option<usize>,
        /// What is wrong.
        why: String,
    },
    /// A list is empty, so nothing can be chosen.
    #[error("`{key}` of the space is empty: give at least one value, or leave the key out")]
    Empty {
        /// Name of the key.
        key: String,
    },
    /// A word is not a phase.
    #[error("`{word}` is no phase of a hunt: give some of {}", PHASES.join(", "))]
    Phase {
        /// The word.
        word: String,
    },
    /// A number is out of bounds.
    #[error("`{key}` of the space cannot be {value}: give {least} to {most}")]
    Bounds {
        /// Name of the key.
        key: &'static str,
        /// The number given.
        value: u64,
        /// Minimum of the number.
        least: u64,
        /// Maximum of the number.
        most: u64,
    },
    /// A workload to start from is not valid.
    #[error("a workload of `start` is refused: {0}")]
    Start(#[from] pagetide_workload::WorkloadError),
}

impl Extent {
    /// Reads a space file and checks it.
    pub fn from_toml(text: &str) -> Result<Self, ExtentError> {
        let extent: Self = toml::from_str(text).map_err(|why| {
            let line = why.span().map(|span| {
                let before = text.as_bytes().iter().take(span.start);
                1 + before.filter(|byte| **byte == b'\n').count()
            });
            let why = why.message().replace('\n', ", ");
            ExtentError::Text { line, why }
        })?;
        extent.check()?;
        Ok(extent)
    }

    /// Replaces the machines by those of `machine`, as far as it states them. A setting that a variant sets no longer
    /// varies.
    pub fn narrow(&mut self, machine: &Adjustment, variants: &[VariantSpec]) {
        if !machine.memory.is_empty() {
            self.memory.clone_from(&machine.memory);
        }
        if !machine.swap.is_empty() {
            self.swap.clone_from(&machine.swap);
        }
        if let Some(device) = machine.files_on {
            self.files_on = vec![device];
        }
        if let Some(fs) = machine.fs {
            self.fs = vec![fs];
        }
        for variant in variants {
            let is_set = |name: &String| variant.settings.contains_key(name);
            self.settings.retain(|name, _| !is_set(name));
        }
    }

    /// Fails if a list other than `advice` and `start` is empty, a phase is unknown, a number is out of bounds, or a
    /// workload to start from is invalid.
    pub fn check(&self) -> Result<(), ExtentError> {
        let lists = [
            ("memory", self.memory.is_empty()),
            ("swap", self.swap.is_empty()),
            ("files-on", self.files_on.is_empty()),
            ("fs", self.fs.is_empty()),
            ("kinds", self.kinds.is_empty()),
            ("sizes", self.sizes.is_empty()),
            ("contents", self.contents.is_empty()),
            ("phases", self.phases.is_empty()),
            ("patterns", self.patterns.is_empty()),
        ];
        let settings = self.settings.iter();
        let settings = settings.map(|(name, values)| (name.as_str(), values.is_empty()));
        let empty = lists.into_iter().chain(settings).find(|(_, is)| *is);
        if let Some((key, _)) = empty {
            let key = key.to_owned();
            return Err(ExtentError::Empty { key });
        }
        let is_unknown = |word: &&String| !PHASES.contains(&word.as_str());
        if let Some(word) = self.phases.iter().find(is_unknown) {
            let word = word.clone();
            return Err(ExtentError::Phase { word });
        }
        let bounds = [
            ("swap-size", self.swap_size, 1, 16),
            ("processes", self.processes as u64, 1, MAX_PROCESSES as u64),
            ("copies", u64::from(self.copies), 1, 64),
            ("segments", self.segments as u64, 1, MAX_SEGMENTS as u64),
            ("length", self.length as u64, 1, 32),
            ("groups", self.groups as u64, 0, MAX_GROUPS as u64),
            ("accesses", self.accesses, 1, MAX_ACCESSES),
        ];
        for (key, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                return Err(ExtentError::Bounds {
                    key,
                    value,
                    least,
                    most,
                });
            }
        }
        for workload in &self.start {
            workload.validate()?;
        }
        Ok(())
    }

    /// True if this phase may occur.
    pub fn has(&self, word: &str) -> bool {
        self.phases.iter().any(|phase| phase == word)
    }
}

/// Serde functions for a time that is written as text, such as `4s`.
mod time {
    use pagetide_quantity::Nanos;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(super) fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&pagetide_workload::plain_time(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Nanos, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(Error::custom)
    }
}
