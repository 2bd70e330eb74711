//! Names of pages: the mappings that the kernel had for each address space.

use std::collections::BTreeMap;

use serde::Serialize;

/// A mapping of an address space, as the kernel's own structures had it when the mapping was removed, the program ended,
/// or the scenario ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mapping {
    /// Number of the address space.
    pub space: u32,
    /// Number of the first page.
    pub first: u64,
    /// Number of pages.
    pub pages: u64,
    /// For a mapping of a file, the page of the file to which the first page belongs.
    pub offset: u64,
    /// Path of the file in its file system; otherwise `[heap]`, `[stack]` or `[vdso]`; empty for other anonymous memory.
    pub name: String,
}

impl Mapping {
    /// True if the mapping is of a file.
    pub fn is_file(&self) -> bool {
        !self.name.is_empty() && !self.name.starts_with('[')
    }

    /// Returns what this mapping has at a page: a file and the place in it in bytes, or the kind of memory.
    pub fn describe(&self, page: u64) -> String {
        if self.is_file() {
            let place = self.offset.wrapping_add(page.wrapping_sub(self.first));
            format!("{}+{:#x}", self.name, place.wrapping_mul(4096))
        } else {
            self.title().to_owned()
        }
    }

    /// Returns the name without a place in a file.
    pub fn title(&self) -> &str {
        if self.name.is_empty() {
            "anonymous"
        } else {
            &self.name
        }
    }
}

/// Mappings by address. Where several mappings had the same page one after the other, the one that was seen last counts.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// For the first page of each part, its last page and the index of its mapping.
    parts: BTreeMap<(u32, u64), (u64, usize)>,
}

impl Places {
    /// Creates the places of mappings in the order in which they were seen.
    pub fn of(mappings: &[Mapping]) -> Self {
        let mut parts: BTreeMap<(u32, u64), (u64, usize)> = BTreeMap::new();
        for (index, mapping) in mappings.iter().enumerate() {
            let Some(more) = mapping.pages.checked_sub(1) else {
                continue;
            };
            let (space, first) = (mapping.space, mapping.first);
            let last = first.saturating_add(more);
            let covered: Vec<_> = parts
                .range((space, 0)..=(space, last))
                .rev()
                .take_while(|(_, (end, _))| *end >= first)
                .map(|(start, part)| (*start, *part))
                .collect();
            for (start, (end, before)) in covered {
                parts.remove(&start);
                if start.1 < first {
                    parts.insert(start, (first - 1, before));
                }
                if end > last {
                    parts.insert((space, last + 1), (end, before));
                }
            }
            parts.insert((space, first), (last, index));
        }
        Self { parts }
    }

    /// Index of the mapping of a page; `None` if no mapping is known.
    pub fn find(&self, space: u32, page: u64) -> Option<usize> {
        let mut before = self.parts.range((space, 0)..=(space, page));
        let (_, (last, index)) = before.next_back()?;
        (page <= *last).then_some(*index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(space: u32, first: u64, pages: u64, name: &str) -> Mapping {
        Mapping {
            space,
            first,
            pages,
            offset: 2,
            name: name.to_owned(),
        }
    }

    #[test]
    fn the_last_mapping_of_a_page_names_it() {
        let all = [
            mapping(1, 100, 50, "/bin/sort"),
            mapping(1, 120, 10, ""),
            mapping(2, 100, 1, "[stack]"),
            mapping(1, 145, 10, "[heap]"),
            mapping(1, 90, 12, "/lib/c"),
        ];
        let places = Places::of(&all);
        let at = |page| places.find(1, page).map(|index| all[index].describe(page));
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(at(89), None);
        assert_eq!(at(101), name("/lib/c+0xd000"));
        assert_eq!(at(102), name("/bin/sort+0x4000"));
        assert_eq!(at(119), name("/bin/sort+0x15000"));
        assert_eq!(at(125), name("anonymous"));
        assert_eq!(at(130), name("/bin/sort+0x20000"));
        assert_eq!(at(154), name("[heap]"));
        assert_eq!(at(155), None);
        assert_eq!(places.find(2, 100), Some(2));
        assert_eq!(places.find(3, 100), None);
    }
}
