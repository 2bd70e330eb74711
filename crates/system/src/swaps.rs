//! `/proc/swaps`: the swap areas.

use std::fs;

use pagetide_quantity::Bytes;

use crate::scan;

/// A swap area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Path of the device or file, with the kernel's octal escapes (`\040` for a blank) decoded.
    pub path: String,
    /// Size of the swap area.
    pub size: Bytes,
    /// Size of the used part of the swap area.
    pub used: Bytes,
    /// Priority of the swap area. The kernel first puts pages into the area with the highest priority.
    pub priority: i32,
}

/// Returns the active swap areas; empty if there are none or `/proc/swaps` cannot be read.
pub fn table() -> Vec<Area> {
    rows(&fs::read("/proc/swaps").unwrap_or_default())
}

/// Returns the paths of the active swap areas; empty if there are none.
pub fn areas() -> Vec<String> {
    table().into_iter().map(|area| area.path).collect()
}

/// Parses the text of `/proc/swaps` and returns the paths of the swap areas. Truncated lines are ignored.
pub fn parse(text: &[u8]) -> Vec<String> {
    rows(text).into_iter().map(|area| area.path).collect()
}

/// Parses the text of `/proc/swaps` and returns the swap areas. Truncated lines are ignored.
fn rows(text: &[u8]) -> Vec<Area> {
    scan::lines(text)
        .skip(1)
        .filter_map(|line| {
            let mut words = scan::words(line);
            let path = unescaped(words.next()?);
            // The kind: `file` or `partition`.
            words.next()?;
            let mut kib = || words.next().and_then(scan::number);
            let (size, used) = (kib()?, kib()?);
            let priority = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
            Some(Area {
                path,
                size: Bytes(size << 10),
                used: Bytes(used << 10),
                priority,
            })
        })
        .collect()
}

fn unescaped(word: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| byte == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        bytes.push(octal.unwrap_or(byte));
        rest = &after[if octal.is_some() { 3 } else { 0 }..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_read_with_blanks_in_their_names_and_negative_priorities() {
        let text = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/var/my\\040swap                          file\t\t262140\t\t1024\t\t-2\n/dev/zram0 partition 1000 0 100\n";
        assert_eq!(parse(text), ["/var/my swap", "/dev/zram0"]);
        let areas = rows(text);
        let [file, zram] = &areas[..] else {
            panic!("{areas:?}")
        };
        assert_eq!(file.path, "/var/my swap");
        assert_eq!((file.used, file.priority), (Bytes::from_mib(1), -2));
        assert_eq!((zram.path.as_str(), zram.priority), ("/dev/zram0", 100));
    }

    #[test]
    fn a_truncated_line_is_left_out() {
        assert!(parse(b"Filename Type Size Used Priority\n/swap file 100").is_empty());
    }

    #[test]
    fn what_is_no_escape_stays() {
        assert_eq!(unescaped(b"/a\\x\\04"), "/a\\x\\04");
    }
}
