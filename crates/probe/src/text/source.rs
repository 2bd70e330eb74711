//! The counter files that are observed. Each source has a file in the folder `source` and an entry in the list
//! [`SOURCES`].

use std::path::Path;

use pagetide_quantity::Unit;
use pagetide_system::Syntax;

/// Builds the list of sources from module names. Each module defines a `SOURCE`.
macro_rules! sources {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// All sources, in the order in which they are read after the trial. Before the trial they are read in reverse
        /// order, so the change of the first source does not include the cost of reading the others.
        pub static SOURCES: &[&Source] = &[$(&$file::SOURCE,)*];
    };
}

sources! {
    vmstat,
    meminfo,
    memory_stat,
    memory_events,
    zram,
    pressure,
    diskstats,
    writeback,
    node_vmstat,
    node_meminfo,
    node_numastat,
}

/// A source of named numbers that the kernel prints as text.
#[derive(Debug)]
pub struct Source {
    /// Name of the source in a record.
    pub name: &'static str,
    /// Owner of the numbers: the machine, a cgroup, a memory node or a zram device.
    pub of: Owner,
    /// Path of each file below the owner's folder, and a prefix for the names of the numbers in it.
    pub files: &'static [(&'static str, &'static str)],
    /// Format of the files.
    pub syntax: Syntax,
    /// Names of the numbers that are sampled over time, if the kernel has them. Empty means all numbers.
    pub over_time: &'static [&'static str],
    /// Unit and meaning of known numbers. Unknown numbers are recorded as counts.
    pub keys: &'static [Key],
}

/// The owner of a source's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The whole machine; the folder is `/`.
    Machine,
    /// The workload's cgroup (version 2).
    Group,
    /// The zram device to which the workload swaps; the folder is for example `/sys/block/zram0`.
    Zram,
    /// One of several zram devices to which the workload swaps. The numbers of each device are recorded as a separate
    /// source, whose name ends with a hyphen and the name of the device, such as `zram-zram1`.
    Device,
    /// A memory node of a machine with several; the folder is for example `/sys/devices/system/node/node1`. The
    /// numbers of each node are recorded as a separate source, such as `node_vmstat-node1`.
    Node,
}

/// Unit and meaning of one number of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Name of the number, as the kernel prints it, after the prefix of its file.
    pub name: &'static str,
    /// Unit of the number.
    pub unit: Unit,
    /// Whether the number is a counter or a gauge.
    pub kind: Kind,
    /// Meaning of the number, as one sentence for the user.
    pub meaning: &'static str,
}

/// Whether a number is a cumulative counter or a current amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Cumulative since boot. Only differences are meaningful.
    Counter,
    /// Amount at the time of reading. A difference is a change of the amount.
    Gauge,
}

impl Source {
    /// Returns the source with this name; `None` if there is none. Ignores a hyphen and the name of a device at the end
    /// of `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        let base = name.split('-').next().unwrap_or(name);
        SOURCES.iter().copied().find(|source| source.name == base)
    }

    /// Returns the name of this source for the device or node whose sysfs folder is `folder`, such as `zram-zram1`.
    pub fn of_device(&self, folder: &Path) -> String {
        let device = folder.file_name().unwrap_or_default();
        format!("{}-{}", self.name, device.to_string_lossy())
    }

    /// Returns the factor that converts a printed number to its unit: 1, except for two numbers printed in KiB.
    pub fn scale(&self, name: &str) -> u64 {
        match (self.name, name) {
            ("vmstat", "pgpgin" | "pgpgout") => 1024,
            _ => 1,
        }
    }

    /// Returns the unit and meaning of the number with this name; `None` if it is not known.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// Builds a table of [`Key`]s from lines of kind, unit, name and meaning.
macro_rules! keys {
    ($($kind:ident $unit:ident $name:literal $meaning:literal;)*) => {
        &[$($crate::text::Key {
            name: $name,
            unit: pagetide_quantity::Unit::$unit,
            kind: $crate::text::Kind::$kind,
            meaning: $meaning,
        },)*]
    };
}
use keys;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_source_and_no_key_stands_twice() {
        for (at, source) in SOURCES.iter().enumerate() {
            assert!(
                SOURCES[at + 1..]
                    .iter()
                    .all(|other| other.name != source.name)
            );
            for (at, key) in source.keys.iter().enumerate() {
                let twin = source.keys[at + 1..]
                    .iter()
                    .find(|other| other.name == key.name);
                assert_eq!(twin, None);
            }
        }
    }

    #[test]
    fn what_is_kept_over_time_has_a_unit() {
        for source in SOURCES {
            for name in source.over_time {
                assert!(source.key(name).is_some(), "{}: {name}", source.name);
            }
        }
    }
}
