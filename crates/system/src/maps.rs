//! `/proc/self/maps` and `/proc/self/status`: the private memory of this process.

use std::fs;
use std::io;

use pagetide_quantity::Bytes;

/// A private writable mapping with data of the program: data segments, heap, stack or anonymous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateMapping {
    /// Address of the first byte.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
    /// True for the heap and the stack, which grow without an mmap(2) call.
    pub grows: bool,
}

impl PrivateMapping {
    /// Returns the size of the mapping in bytes.
    pub const fn size(self) -> Bytes {
        Bytes(self.end - self.start)
    }
}

/// Returns the private writable mappings of this process. Fails if `/proc/self/maps` cannot be read.
pub fn own() -> io::Result<Vec<PrivateMapping>> {
    Ok(parse(&fs::read_to_string("/proc/self/maps")?))
}

/// Parses the text of `/proc/PID/maps`, and returns the private writable mappings.
pub fn parse(text: &str) -> Vec<PrivateMapping> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<PrivateMapping> {
    let mut words = line.split_ascii_whitespace();
    let range = words.next()?;
    let rights = words.next()?;
    let (_offset, _device, inode) = (words.next()?, words.next()?, words.next()?);
    let name = words.next().unwrap_or("");
    // The program's data segments are private and writable too.
    let data = rights.starts_with("rw") && rights.ends_with('p');
    if !data || name == "[vvar]" || (inode == "0" && name.starts_with("[v")) {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    Some(PrivateMapping {
        start,
        end: end.max(start),
        grows: name == "[heap]" || name == "[stack]",
    })
}

/// Returns the size of this process's page tables (`VmPTE`); 0 if it cannot be read.
pub fn page_tables() -> Bytes {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmPTE:")?.trim().strip_suffix(" kB"))
        .and_then(|text| text.trim().parse().ok())
        .map_or(Bytes(0), Bytes::from_kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_stack_and_data_are_the_programs_own_and_code_is_not() {
        let maps = "00400000-00401000 r-xp 00000000 08:02 173521           /init\n\
                    01a2b000-01a4c000 rw-p 00000000 00:00 0                [heap]\n\
                    7f00-7f10 rw-s 00000000 00:01 9 /dev/zero (deleted)\n\
                    7ffd0000-7ffd9000 rw-p 00000000 00:00 0\n";
        let own = parse(maps);
        assert_eq!(own.len(), 2);
        assert_eq!(
            (own[0].start, own[0].end, own[0].grows),
            (0x01a2_b000, 0x01a4_c000, true)
        );
        assert_eq!((own[1].size(), own[1].grows), (Bytes(0x9000), false));
    }
}
