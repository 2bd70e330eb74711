//! The counter files that are observed: one file below this one for each source, and an entry in the list of
//! [`SOURCES`].

use pagetide_quantity::Unit;
use pagetide_system::Syntax;

/// Builds the list from the module names; each module defines a `SOURCE`.
macro_rules! sources {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// All sources, in the order in which they are read after the trial. Before the trial they are read in reverse
        /// order, so that the counters of the first source do not include reading the others.
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
}

/// A source of named numbers that the kernel prints as text.
#[derive(Debug)]
pub struct Source {
    /// Its name in a record.
    pub name: &'static str,
    /// Owner of the numbers.
    pub of: Owner,
    /// Paths of the files below the owner's folder, each with a prefix for the names of its numbers.
    pub files: &'static [(&'static str, &'static str)],
    /// Format of the files.
    pub syntax: Syntax,
    /// Names of the numbers sampled over time, if the kernel has them; empty for all.
    pub over_time: &'static [&'static str],
    /// Unit and meaning of known numbers. Unknown numbers are recorded too, without a unit.
    pub keys: &'static [Key],
}

/// Whose numbers a source contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The whole machine; the folder is `/`.
    Machine,
    /// The workload's control group (version 2).
    Group,
    /// The zram device that the workload swaps to; the folder is for example `/sys/block/zram0`.
    Zram,
}

/// Unit and meaning of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Counter or gauge.
    pub kind: Kind,
    /// One sentence for the user.
    pub meaning: &'static str,
}

/// Whether a number is cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Cumulative since boot; use differences.
    Counter,
    /// An amount at the time of reading; a difference is a change of level.
    Gauge,
}

impl Source {
    /// The source with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SOURCES.iter().copied().find(|source| source.name == name)
    }

    /// Factor from a printed number to its unit: 1, except for two numbers that the kernel prints in KiB.
    pub fn scale(&self, name: &str) -> u64 {
        match (self.name, name) {
            ("vmstat", "pgpgin" | "pgpgout") => 1024,
            _ => 1,
        }
    }

    /// Unit and meaning of one number; `None` if it is not known.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// Builds a table of keys: kind, unit, name and meaning of each.
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
