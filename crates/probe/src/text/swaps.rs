//! `/proc/swaps`: the swap areas and how full they are.

use serde::{Deserialize, Serialize};

use super::file::Parse;
use super::scan;
use pagetide_quantity::Bytes;

/// One swap area.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapArea {
    /// The file or device, with the kernel's octal escapes (`\040` for a blank) resolved.
    pub path: String,
    /// `file` or `partition`.
    pub kind: String,
    /// Capacity.
    pub size: Bytes,
    /// In use.
    pub used: Bytes,
    /// Areas of higher priority fill first; equal ones take turns.
    pub priority: i64,
}

/// All swap areas, in the order of their types (as page maps number them, if none was ever removed).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swaps {
    areas: Vec<SwapArea>,
}

impl Swaps {
    /// The areas.
    pub fn areas(&self) -> &[SwapArea] {
        &self.areas
    }

    /// One area by its path.
    pub fn area(&self, path: &str) -> Option<&SwapArea> {
        self.areas.iter().find(|area| area.path == path)
    }

    /// All that is in use.
    pub fn used(&self) -> Bytes {
        self.areas
            .iter()
            .fold(Bytes(0), |sum, area| sum.saturating_add(area.used))
    }
}

impl Parse for Swaps {
    fn parse(&mut self, text: &[u8]) {
        let mut count = 0;
        for line in scan::lines(text).skip(1) {
            let mut words = scan::words(line);
            let (Some(path), Some(kind)) = (words.next(), words.next()) else {
                continue;
            };
            // A deleted swap file is printed as `/path (deleted)`, with the blank escaped; kind is never in parentheses.
            let numbers = (
                words.next().and_then(scan::number),
                words.next().and_then(scan::number),
                words.next().and_then(scan::signed),
            );
            let (Some(size), Some(used), Some(priority)) = numbers else {
                continue;
            };
            if self.areas.len() == count {
                self.areas.push(SwapArea::default());
            }
            let area = &mut self.areas[count];
            count += 1;
            set(&mut area.path, path);
            set(&mut area.kind, kind);
            area.size = Bytes(size.saturating_mul(1024));
            area.used = Bytes(used.saturating_mul(1024));
            area.priority = priority;
        }
        self.areas.truncate(count);
    }
}

/// Writes a word into a string that keeps its memory, resolving `\ooo`.
fn set(text: &mut String, word: &[u8]) {
    text.clear();
    let mut at = 0;
    // Bytes beyond ASCII are kept only where the whole word is valid UTF-8, which paths nearly always are.
    if let (Ok(word), false) = (std::str::from_utf8(word), word.contains(&b'\\')) {
        text.push_str(word);
        return;
    }
    while let Some(&byte) = word.get(at) {
        let octal = word.get(at + 1..at + 4).and_then(|digits| {
            digits.iter().try_fold(0_u32, |value, &digit| {
                (b'0'..=b'7')
                    .contains(&digit)
                    .then(|| value * 8 + u32::from(digit - b'0'))
            })
        });
        if let (b'\\', Some(escaped)) = (byte, octal.and_then(char::from_u32)) {
            text.push(escaped);
            at += 4;
        } else {
            text.push(char::from(byte));
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_read_with_blanks_in_their_names_and_negative_priorities() {
        let mut swaps = Swaps::default();
        swaps.parse(b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/var/my\\040swap                          file\t\t262140\t\t1024\t\t-2\n/dev/zram0 partition 1000 0 100\n");
        assert_eq!(swaps.areas().len(), 2);
        let area = swaps.area("/var/my swap").unwrap();
        assert_eq!(area.size, Bytes(262_140 * 1024));
        assert_eq!(area.priority, -2);
        assert_eq!(swaps.used(), Bytes(1024 * 1024));
    }

    #[test]
    fn a_truncated_line_is_left_out() {
        let mut swaps = Swaps::default();
        swaps.parse(b"Filename Type Size Used Priority\n/swap file 100");
        assert!(swaps.areas().is_empty());
    }
}
