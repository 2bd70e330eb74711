//! Named counters: the common format of `vmstat`, `meminfo`, `memory.stat` and similar files.
//!
//! Every key that the kernel prints is stored, whether pagetide knows it or not. The first parse stores the names.
//! Later parses only compare each name with the one at the same position, so they allocate nothing as long as the
//! kernel prints the same keys.

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scan;

/// Line format of a counter file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// `key value`: vmstat, memory.stat.
    KeyValue,
    /// `key: value kB`, with values converted to bytes; a line without `kB` is a plain count: meminfo.
    KeyColonKib,
    /// Lines as for [`Self::KeyColonKib`], with `Node N` before each key: meminfo of a memory node.
    NodeKeyColonKib,
    /// One line of numbers, with names in this order; additional numbers are stored as `column N`: zram's mm_stat.
    Columns(&'static [&'static str]),
    /// `some avg10=0.00 … total=123`: pressure. Only the total is stored, converted from microseconds to nanoseconds.
    Pressure,
    /// One line for each block device: diskstats. Only the bytes read and written are stored, under the name of the
    /// device followed by ` read` and ` written`.
    Disks,
}

/// Counters by name, in the order in which the kernel printed them. Serialised as a map in the same order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    keys: Vec<Box<str>>,
    values: Vec<u64>,
}

impl Counters {
    /// Creates an empty set of counters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces all counters by the counters in `text`. Lines that do not match the format are ignored.
    pub fn parse(&mut self, text: &[u8], syntax: Syntax) {
        let mut filler = self.refill();
        match syntax {
            Syntax::KeyValue => {
                for line in scan::lines(text) {
                    let mut words = scan::words(line);
                    let (key, value) = (words.next(), words.next().and_then(scan::number));
                    if let (Some(key), Some(value)) = (key, value) {
                        filler.put(b"", key, value);
                    }
                }
            }
            Syntax::KeyColonKib => {
                for line in scan::lines(text) {
                    if let Some((key, value)) = key_colon_kib(line) {
                        filler.put(b"", key, value);
                    }
                }
            }
            Syntax::NodeKeyColonKib => {
                for line in scan::lines(text) {
                    if let Some((key, value)) = of_node(line).and_then(key_colon_kib) {
                        filler.put(b"", key, value);
                    }
                }
            }
            Syntax::Pressure => {
                for line in scan::lines(text) {
                    if let Some((key, value)) = pressure(line) {
                        filler.put(b"", key, value);
                    }
                }
            }
            Syntax::Disks => {
                for line in scan::lines(text) {
                    if let Some((device, read, written)) = disk(line) {
                        filler.put(device, b" read", read);
                        filler.put(device, b" written", written);
                    }
                }
            }
            Syntax::Columns(names) => {
                for (at, word) in scan::words(text).enumerate() {
                    let Some(value) = scan::number(word) else {
                        continue;
                    };
                    match names.get(at) {
                        Some(name) => filler.put(b"", name.as_bytes(), value),
                        None => filler.put(b"column ", digits(at).as_slice(), value),
                    }
                }
            }
        }
    }

    /// Starts to replace all counters. When the returned value is dropped, keys that were not written again are
    /// removed.
    fn refill(&mut self) -> Refill<'_> {
        Refill {
            counters: self,
            at: 0,
        }
    }

    /// Returns the value of the counter `key`; `None` if the kernel printed no such key.
    pub fn get(&self, key: &str) -> Option<u64> {
        self.index(key).map(|at| self.values[at])
    }

    /// Returns the value of the counter `key`, like [`Counters::get`]. Tries the index `place` first, because a key is
    /// nearly always at the same index in another reading.
    pub fn get_near(&self, place: usize, key: &str) -> Option<u64> {
        match self.keys.get(place) {
            Some(same) if &**same == key => self.values.get(place).copied(),
            _ => self.get(key),
        }
    }

    /// Copies all counters of `other` into this set; allocates only if the names differ.
    pub fn copy(&mut self, other: &Self) {
        if self.keys == other.keys {
            self.values.copy_from_slice(&other.values);
        } else {
            self.clone_from(other);
        }
    }

    /// Returns the index of a key in [`Self::values`]; `None` if there is no such key.
    pub fn index(&self, key: &str) -> Option<usize> {
        self.keys.iter().position(|known| &**known == key)
    }

    /// Returns the sum of the counters with these keys, ignoring keys that do not exist. `None` if no key exists.
    pub fn sum(&self, keys: &[&str]) -> Option<u64> {
        keys.iter()
            .filter_map(|key| self.get(key))
            .reduce(u64::saturating_add)
    }

    /// Returns all counters as (key, value), in the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.keys
            .iter()
            .map(|key| &**key)
            .zip(self.values.iter().copied())
    }

    /// Returns the values of all counters, in the kernel's order.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the names of all counters, in the kernel's order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| &**key)
    }

    /// Returns the number of counters.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there are no counters.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Sets the counter `key`. A new key is appended at the end.
    pub fn set(&mut self, key: &str, value: u64) {
        if let Some(at) = self.index(key) {
            self.values[at] = value;
        } else {
            self.keys.push(key.into());
            self.values.push(value);
        }
    }

    /// Returns the changes since the reading `before`: `self` minus `before`, for keys that exist in both.
    pub fn delta(&self, before: &Self) -> Delta {
        let mut changes = Vec::with_capacity(self.len());
        let mut only_after = Vec::new();
        for (at, (key, value)) in self.iter().enumerate() {
            match before.get_near(at, key) {
                Some(earlier) => changes.push((Box::from(key), difference(value, earlier))),
                None => only_after.push(key.into()),
            }
        }
        let only_before = before
            .keys
            .iter()
            .filter(|key| self.index(key).is_none())
            .cloned()
            .collect();
        Delta {
            changes,
            only_before,
            only_after,
        }
    }
}

impl<K: AsRef<str>> FromIterator<(K, u64)> for Counters {
    fn from_iter<T: IntoIterator<Item = (K, u64)>>(pairs: T) -> Self {
        let mut counters = Self::new();
        for (key, value) in pairs {
            counters.set(key.as_ref(), value);
        }
        counters
    }
}

/// Returns the difference `later` − `earlier`; also correct if the counter wrapped around 64 bits in between.
fn difference(later: u64, earlier: u64) -> i64 {
    later.wrapping_sub(earlier).cast_signed()
}

/// Writes the values of a new reading into [`Counters`]. Stored names are reused as long as the kernel prints the same
/// names.
struct Refill<'a> {
    counters: &'a mut Counters,
    at: usize,
}

impl Refill<'_> {
    /// Writes the next counter. Its name is `prefix` followed by `key`.
    fn put(&mut self, prefix: &[u8], key: &[u8], value: u64) {
        let known = self.counters.keys.get(self.at).is_some_and(|name| {
            let name = name.as_bytes();
            name.len() == prefix.len() + key.len()
                && name.starts_with(prefix)
                && name.ends_with(key)
        });
        if known {
            self.counters.values[self.at] = value;
        } else {
            // The first reading, or the kernel prints other keys than before: replace the stored names from here on.
            self.counters.keys.truncate(self.at);
            self.counters.values.truncate(self.at);
            let mut name = String::from_utf8_lossy(prefix).into_owned();
            name.push_str(&String::from_utf8_lossy(key));
            self.counters.keys.push(name.into());
            self.counters.values.push(value);
        }
        self.at += 1;
    }
}

impl Drop for Refill<'_> {
    fn drop(&mut self) {
        self.counters.keys.truncate(self.at);
        self.counters.values.truncate(self.at);
    }
}

/// Parses `MemTotal:  123 kB` to the name and bytes, and `HugePages_Total: 3` to the name and a plain number.
fn key_colon_kib(line: &[u8]) -> Option<(&[u8], u64)> {
    let (key, rest) = scan::split_once(line, b':')?;
    let mut words = scan::words(rest);
    let value = scan::number(words.next()?)?;
    match words.next() {
        Some(b"kB") => Some((key, value.checked_mul(1024)?)),
        _ => Some((key, value)),
    }
}

/// Returns the part after the node's number of a line such as `Node 0 MemTotal:  123 kB`.
fn of_node(line: &[u8]) -> Option<&[u8]> {
    let rest = scan::split_once(line.strip_prefix(b"Node ")?, b' ')?.1;
    Some(rest.trim_ascii_start())
}

/// Parses `some avg10=… total=12` to `some` and 12,000 ns.
fn pressure(line: &[u8]) -> Option<(&[u8], u64)> {
    let mut words = scan::words(line);
    let key = words.next()?;
    let total = words.find_map(|word| word.strip_prefix(b"total="))?;
    Some((key, scan::number(total)?.checked_mul(1000)?))
}

/// Parses a line of `/proc/diskstats` to the device's name and the bytes read and written. Source: kernel
/// Documentation/admin-guide/iostats.rst: major and minor number of the device, its name, reads, merged reads, sectors
/// read, time reading, writes, merged writes, sectors written. A sector has 512 bytes.
fn disk(line: &[u8]) -> Option<(&[u8], u64, u64)> {
    const SECTOR_BYTES: u64 = 512;
    let mut words = scan::words(line);
    let device = words.nth(2)?;
    let read = scan::number(words.nth(2)?)?;
    let written = scan::number(words.nth(3)?)?;
    Some((
        device,
        read.checked_mul(SECTOR_BYTES)?,
        written.checked_mul(SECTOR_BYTES)?,
    ))
}

/// Decimal digits of a number, in a buffer on the stack.
struct Digits {
    text: [u8; 20],
    from: usize,
}

impl Digits {
    fn as_slice(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

/// Formats a number as decimal digits without allocating.
fn digits(mut value: usize) -> Digits {
    let mut out = Digits {
        text: [b'0'; 20],
        from: 20,
    };
    loop {
        out.from -= 1;
        out.text[out.from] = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
        if value == 0 {
            return out;
        }
    }
}

/// Changes between two readings of the same source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    changes: Vec<(Box<str>, i64)>,
    /// Keys that only the earlier reading had.
    pub only_before: Vec<Box<str>>,
    /// Keys that only the later reading has.
    pub only_after: Vec<Box<str>>,
}

impl Delta {
    /// Returns the change of the counter `key`, later minus earlier; `None` if the key is missing in either reading.
    pub fn get(&self, key: &str) -> Option<i64> {
        self.changes
            .iter()
            .find(|(name, _)| &**name == key)
            .map(|&(_, change)| change)
    }

    /// Returns the increase of the counter `key`; `None` if the key is missing or the counter decreased.
    pub fn growth(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(|change| u64::try_from(change).ok())
    }

    /// Returns the sum of [`Self::growth`] over these keys, ignoring keys without one; `None` if no key has one.
    pub fn growth_of(&self, keys: &[&str]) -> Option<u64> {
        keys.iter()
            .filter_map(|key| self.growth(key))
            .reduce(u64::saturating_add)
    }

    /// Returns all changes as (key, change), in the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.changes.iter().map(|(key, change)| (&**key, *change))
    }
}

impl<K: Into<Box<str>>> FromIterator<(K, i64)> for Delta {
    fn from_iter<T: IntoIterator<Item = (K, i64)>>(pairs: T) -> Self {
        Self {
            changes: pairs.into_iter().map(|(k, v)| (k.into(), v)).collect(),
            ..Self::default()
        }
    }
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, &value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Counters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Counters;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map of counter names to unsigned numbers")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Counters, M::Error> {
                let mut counters = Counters::new();
                while let Some((key, value)) = map.next_entry::<String, u64>()? {
                    counters.keys.push(key.into());
                    counters.values.push(value);
                }
                Ok(counters)
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_kept_in_the_kernels_order() {
        let mut counters = Counters::new();
        counters.parse(b"pgscan_direct 12\na_key_of_tomorrow 3\n", Syntax::KeyValue);
        let all: Vec<_> = counters.iter().collect();
        assert_eq!(all, [("pgscan_direct", 12), ("a_key_of_tomorrow", 3)]);
    }

    #[test]
    fn a_key_that_disappears_is_gone_and_one_that_appears_is_learned() {
        let mut counters = Counters::new();
        counters.parse(b"a 1\nb 2\nc 3\n", Syntax::KeyValue);
        let before = counters.clone();
        counters.parse(b"a 5\nc 4\nd 9\n", Syntax::KeyValue);
        assert_eq!(counters.get("b"), None);
        assert_eq!(counters.get("c"), Some(4));
        let delta = counters.delta(&before);
        assert_eq!(delta.get("a"), Some(4));
        assert_eq!(delta.get("c"), Some(1));
        assert_eq!(delta.get("b"), None);
        assert_eq!(&*delta.only_before[0], "b");
        assert_eq!(&*delta.only_after[0], "d");
    }

    #[test]
    fn lines_without_a_number_are_passed_over_and_not_guessed() {
        let mut counters = Counters::new();
        counters.parse(b"a 1\nb\nc x\nd 99999999999999999999\n", Syntax::KeyValue);
        assert_eq!(counters.len(), 1);
    }

    #[test]
    fn meminfo_is_in_bytes_and_bare_counts_stay() {
        let mut counters = Counters::new();
        let text =
            b"MemTotal:       24684208 kB\nActive(anon):          0 kB\nHugePages_Total:       7\n";
        counters.parse(text, Syntax::KeyColonKib);
        assert_eq!(counters.get("MemTotal"), Some(24_684_208 * 1024));
        assert_eq!(counters.get("Active(anon)"), Some(0));
        assert_eq!(counters.get("HugePages_Total"), Some(7));
    }

    #[test]
    fn a_nodes_meminfo_is_read_without_the_node_before_each_key() {
        let mut counters = Counters::new();
        let text = b"Node 1 MemTotal:       65536 kB\nNode 1 Active(anon):      4 kB\nMemFree: 1 kB\nNode 1\n";
        counters.parse(text, Syntax::NodeKeyColonKib);
        let all: Vec<_> = counters.iter().collect();
        assert_eq!(all, [("MemTotal", 64 << 20), ("Active(anon)", 4 << 10)]);
    }

    #[test]
    fn pressure_is_the_time_stalled_in_nanoseconds_and_a_line_cut_short_is_absent() {
        let mut counters = Counters::new();
        let some = "some avg10=1.25 avg60=0.50 avg300=0.01 total=1000\n";
        counters.parse(
            format!("{some}full avg10=0.00 avg60=0.0").as_bytes(),
            Syntax::Pressure,
        );
        assert_eq!(counters.get("some"), Some(1_000_000));
        assert_eq!(counters.get("full"), None);
    }

    #[test]
    fn disks_are_read_in_bytes_and_a_line_cut_short_is_absent() {
        let mut counters = Counters::new();
        let text =
            b" 252       0 nullb0 3 1 24 9 5 2 400 7 0 8 16 0 0 0 0 0 0\n  43 0 nbd0 1 0 8 0 2\n";
        counters.parse(text, Syntax::Disks);
        let all: Vec<_> = counters.iter().collect();
        assert_eq!(
            all,
            [("nullb0 read", 24 * 512), ("nullb0 written", 400 * 512)]
        );
    }

    #[test]
    fn columns_beyond_the_named_ones_are_kept() {
        let mut counters = Counters::new();
        counters.parse(b"1 2 3\n", Syntax::Columns(&["x", "y"]));
        assert_eq!(counters.get("y"), Some(2));
        assert_eq!(counters.get("column 2"), Some(3));
    }

    #[test]
    fn a_counter_that_wraps_gives_the_small_difference() {
        assert_eq!(difference(5, u64::MAX - 4), 10);
        assert_eq!(difference(3, 9), -6);
    }

    #[test]
    fn the_map_form_keeps_the_order() {
        let counters: Counters = [("z", 1), ("a", 2)].into_iter().collect();
        let text = serde_json::to_string(&counters).unwrap();
        assert_eq!(text, r#"{"z":1,"a":2}"#);
        assert_eq!(serde_json::from_str::<Counters>(&text).unwrap(), counters);
    }
}
