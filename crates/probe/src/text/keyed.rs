//! The sources that are names and numbers, each with its syntax and usual place.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::counters::{Counters, Syntax};
use super::file::{Parse, TextFile};
use crate::ProbeError;

/// A source of named counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyedSource {
    /// `/proc/vmstat`: events and gauges of the whole machine, mostly in pages.
    Vmstat,
    /// `/proc/meminfo`, in bytes here.
    Meminfo,
    /// A memory cgroup's `memory.stat`, version 1 or 2, in bytes and events.
    MemoryStat,
    /// A memory cgroup's `memory.events`, version 2.
    MemoryEvents,
    /// A zram device's `mm_stat` (Documentation/admin-guide/blockdev/zram.rst).
    ZramMmStat,
    /// A zram device's `io_stat`.
    ZramIoStat,
}

impl KeyedSource {
    /// How its text is written.
    pub const fn syntax(self) -> Syntax {
        match self {
            Self::Vmstat | Self::MemoryStat | Self::MemoryEvents => Syntax::KeyValue,
            Self::Meminfo => Syntax::KeyColonKib,
            Self::ZramMmStat => Syntax::Columns(&[
                "orig_data_size",
                "compr_data_size",
                "mem_used_total",
                "mem_limit",
                "mem_used_max",
                "same_pages",
                "pages_compacted",
                "huge_pages",
                "huge_pages_since",
            ]),
            Self::ZramIoStat => {
                Syntax::Columns(&["failed_reads", "failed_writes", "invalid_io", "notify_free"])
            }
        }
    }

    /// Where it lies: under `/proc`, or in the directory given (a cgroup's, a zram device's).
    pub fn path(self, directory: &Path) -> PathBuf {
        match self {
            Self::Vmstat => PathBuf::from("/proc/vmstat"),
            Self::Meminfo => PathBuf::from("/proc/meminfo"),
            Self::MemoryStat => directory.join("memory.stat"),
            Self::MemoryEvents => directory.join("memory.events"),
            Self::ZramMmStat => directory.join("mm_stat"),
            Self::ZramIoStat => directory.join("io_stat"),
        }
    }

    /// Opens the source; `directory` matters only for cgroups and devices.
    pub fn open(self, directory: &Path) -> Result<TextFile<Keyed>, ProbeError> {
        TextFile::open(&self.path(directory), Keyed::new(self))
    }
}

/// Named counters together with where they come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyed {
    /// The source, which fixes syntax and meaning of the keys.
    pub source: KeyedSource,
    /// All keys and values.
    pub counters: Counters,
}

impl Keyed {
    /// Nothing read yet.
    pub fn new(source: KeyedSource) -> Self {
        Self {
            source,
            counters: Counters::new(),
        }
    }
}

impl Parse for Keyed {
    fn parse(&mut self, text: &[u8]) {
        self.counters.parse(text, self.source.syntax());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zram_with_fewer_columns_has_fewer_keys_and_no_zeros_in_their_place() {
        let mut old = Keyed::new(KeyedSource::ZramMmStat);
        old.parse(b"  4096  74  12288  0  12288  1  0  0\n");
        assert_eq!(old.counters.get("compr_data_size"), Some(74));
        assert_eq!(old.counters.get("huge_pages_since"), None);
    }

    #[test]
    fn this_kernels_vmstat_is_read_whole() {
        let mut file = KeyedSource::Vmstat.open(Path::new("/")).unwrap();
        let first = file.sample().unwrap().clone();
        assert!(first.counters.get("pgfault").unwrap() > 0);
        assert_eq!(first.counters.unparsed(), 0);
        let delta = file.sample().unwrap().counters.delta(&first.counters);
        assert!(delta.growth("pgfault").is_some());
        assert!(delta.only_after.is_empty());
    }
}
