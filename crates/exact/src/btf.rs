//! Finds members of the kernel's structures in its BTF type data. Source: Linux `Documentation/bpf/btf.rst`.

use std::collections::HashMap;

/// First bytes of type data, little-endian.
pub const MAGIC: u16 = 0xeb9f;
/// Maximum number of types that refer to each other without a name, such as `const volatile`.
const MAX_ALIASES: usize = 16;
/// Maximum depth of structures without a name in each other.
const MAX_DEPTH: usize = 16;

/// Kinds of types whose data matters here. Source: Linux `include/uapi/linux/btf.h`.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Kinds that stand for another type: `typedef`, `volatile`, `const`, `restrict` and a tag.
const ALIASES: [u32; 5] = [8, 9, 10, 11, 18];

/// A type. For an alias, `size` is the number of the type that it stands for.
#[derive(Clone, Copy, Debug)]
struct Type {
    kind: u32,
    size: u32,
    /// Places of the members are in the lower 24 bits of their numbers.
    has_bit_fields: bool,
    /// Place of the first member, and number of members.
    members: (usize, usize),
}

/// The types of a kernel.
#[derive(Debug)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    all: Vec<Type>,
    structures: HashMap<&'a [u8], usize>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn part(bytes: &[u8], start: usize, size: u32) -> Option<&[u8]> {
    bytes.get(start..start.checked_add(place(size))?)
}

impl<'a> Btf<'a> {
    /// Reads the types. `None` if the data is damaged.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let magic = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
        (magic == MAGIC).then_some(())?;
        let header = place(word(bytes, 4)?);
        let number = |at| word(bytes, at);
        let types = part(bytes, header.checked_add(place(number(8)?))?, number(12)?)?;
        let strings = part(bytes, header.checked_add(place(number(16)?))?, number(20)?)?;
        let mut found = Self {
            types,
            strings,
            // Number 0 is `void`.
            all: vec![Type {
                kind: 0,
                size: 0,
                has_bit_fields: false,
                members: (0, 0),
            }],
            structures: HashMap::new(),
        };
        let mut at = 0;
        while at < types.len() {
            let (name, info, size) = (word(types, at)?, word(types, at + 4)?, word(types, at + 8)?);
            let (kind, count) = ((info >> 24) & 0x1f, place(info & 0xffff));
            at += 12;
            // Bytes after the head of a type, and for each of its parts.
            let (once, each) = match kind {
                1 | 14 | 17 => (4, 0),
                3 => (12, 0),
                STRUCT | UNION | 15 | 19 => (0, 12),
                6 | 13 => (0, 8),
                _ => (0, 0),
            };
            if matches!(kind, STRUCT | UNION) {
                let name = found.name(name)?;
                let number = found.all.len();
                if !name.is_empty() {
                    found.structures.entry(name).or_insert(number);
                }
            }
            found.all.push(Type {
                kind,
                size,
                has_bit_fields: info >> 31 != 0,
                members: (at, count),
            });
            at += once + each * count;
        }
        Some(found)
    }

    fn name(&self, at: u32) -> Option<&'a [u8]> {
        let rest = self.strings.get(place(at)..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        rest.get(..end)
    }

    /// Place of a member in bytes, and the number of its type. Members of members without a name belong to the structure.
    fn member(&self, of: usize, name: &[u8], depth: usize) -> Option<(u64, usize)> {
        let depth = depth.checked_sub(1)?;
        let mut number = of;
        for _ in 0..MAX_ALIASES {
            let found = self.all.get(number)?;
            if !ALIASES.contains(&found.kind) {
                break;
            }
            number = place(found.size);
        }
        let found = self.all.get(number)?;
        if !matches!(found.kind, STRUCT | UNION) {
            return None;
        }
        let (start, count) = found.members;
        for at in (start..).step_by(12).take(count) {
            let (own, of) = (word(self.types, at)?, place(word(self.types, at + 4)?));
            let bits = word(self.types, at + 8)?;
            let bits = if found.has_bit_fields {
                bits & 0xff_ffff
            } else {
                bits
            };
            let offset = u64::from(bits) / 8;
            let own = self.name(own)?;
            if own == name {
                return Some((offset, of));
            }
            if own.is_empty()
                && let Some((inner, of)) = self.member(of, name, depth)
            {
                return Some((offset + inner, of));
            }
        }
        None
    }

    /// Returns the place in bytes of a member: the name of a structure, then of members, with dots between them. `None` if
    /// the kernel has no such member.
    pub fn place(&self, path: &str) -> Option<u64> {
        let mut names = path.split('.');
        let mut of = *self.structures.get(names.next()?.as_bytes())?;
        let mut sum = 0;
        for name in names {
            let (offset, next) = self.member(of, name.as_bytes(), MAX_DEPTH)?;
            sum += offset;
            of = next;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type data with `struct out { long a; const struct { int b; union { in c; }; }; }`, and `in` as a `typedef` of
    /// `struct in { long x; long y; }`.
    fn sample() -> Vec<u8> {
        let strings = b"\0out\0a\0in\0x\0y\0b\0c\0";
        let at = |name: &[u8]| {
            let found = strings.windows(name.len() + 2).position(|window| {
                window[0] == 0 && window[1..=name.len()] == *name && window[name.len() + 1] == 0
            });
            u32::try_from(found.unwrap() + 1).unwrap()
        };
        let [out, long, within, low, high, int, inner] = [
            b"out", b"a\0\0", b"in\0", b"x\0\0", b"y\0\0", b"b\0\0", b"c\0\0",
        ]
        .map(|name| at(name.split(|byte| *byte == 0).next().unwrap()));
        let mut types: Vec<u32> = Vec::new();
        let mut add = |name, kind: u32, count: u32, size, rest: &[u32]| {
            types.extend([name, kind << 24 | count, size]);
            types.extend(rest);
        };
        // 1: long. 2: struct in. 3: typedef in. 4: union. 5: struct. 6: const of 5. 7: struct out.
        add(0, 1, 0, 8, &[64]);
        add(within, STRUCT, 2, 16, &[low, 1, 0, high, 1, 64]);
        add(within, 8, 0, 2, &[]);
        add(0, UNION, 1, 16, &[inner, 3, 0]);
        add(0, STRUCT, 2, 24, &[int, 1, 0, 0, 4, 64]);
        add(0, 10, 0, 5, &[]);
        add(out, STRUCT, 2, 32, &[long, 1, 0, 0, 6, 64]);
        let types: Vec<u8> = types.into_iter().flat_map(u32::to_le_bytes).collect();
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
        let mut all = Vec::from([0x9f, 0xeb, 1, 0]);
        for number in [24, 0, size(&types), size(&types), size(strings)] {
            all.extend(number.to_le_bytes());
        }
        [all, types, strings.to_vec()].concat()
    }

    #[test]
    fn members_are_found_through_names_that_stand_for_others_and_structures_without_a_name() {
        let bytes = sample();
        let btf = Btf::read(&bytes).unwrap();
        let places = ["out.a", "out.b", "out.c.y", "in.y"].map(|path| btf.place(path));
        assert_eq!(places, [Some(0), Some(8), Some(24), Some(8)]);
        for path in ["out.d", "none.a", "out.a.x", "out.c.y.z", ""] {
            assert_eq!(btf.place(path), None, "{path}");
        }
    }

    #[test]
    fn damaged_type_data_is_refused_or_tells_less() {
        let bytes = sample();
        for length in 0..bytes.len() {
            assert!(Btf::read(&bytes[..length]).is_none(), "{length}");
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0xff;
            if let Some(btf) = Btf::read(&bytes) {
                let _ = btf.place("out.c.y");
            }
        }
    }
}
