//! The files of numbers that are observed: a file each below this one, and a word in the list of [`SOURCES`].

use pagetide_quantity::Unit;
use pagetide_system::Syntax;

/// Makes the list from the names of the files, each of which holds a `SOURCE`.
macro_rules! sources {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// All sources, in the order in which they are read after the trial. Before it they are read in reverse order, so that
        /// reading the others is not counted by the first.
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

/// Numbers with names that the kernel prints as text.
#[derive(Debug)]
pub struct Source {
    /// Its name in a record.
    pub name: &'static str,
    /// Whose numbers they are.
    pub of: Owner,
    /// The files, below the owner's folder, each with what comes before the names of its numbers.
    pub files: &'static [(&'static str, &'static str)],
    /// How they are written.
    pub syntax: Syntax,
    /// The numbers that are kept over time, where the kernel has them; all if this is empty.
    pub over_time: &'static [&'static str],
    /// What the numbers mean. Numbers that are not here are kept in every record all the same; they only lack a unit.
    pub keys: &'static [Key],
}

/// Whose numbers a source has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The whole machine; the folder is `/`.
    Machine,
    /// The workload's control group (version 2).
    Group,
    /// The zram device that the workload swaps to; the folder is such as `/sys/block/zram0`.
    Zram,
}

/// A number that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// Whether it only grows.
    pub kind: Kind,
    /// One sentence.
    pub meaning: &'static str,
}

/// Whether a number only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Counts since boot; take differences.
    Counter,
    /// An amount at the moment of reading; a difference is a change of level.
    Gauge,
}

impl Source {
    /// The source of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SOURCES.iter().copied().find(|source| source.name == name)
    }

    /// How many of its unit one of its numbers counts: two are in KiB.
    pub fn scale(&self, name: &str) -> u64 {
        match (self.name, name) {
            ("vmstat", "pgpgin" | "pgpgout") => 1024,
            _ => 1,
        }
    }

    /// What one of its numbers means.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// A table of keys: kind, unit, name and meaning of each.
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
