//! `/proc/zoneinfo`: free pages, watermarks and counters of every zone (mm/vmstat.c, `zoneinfo_show_print`).

use serde::{Deserialize, Serialize};

use super::counters::{Counters, digits};
use super::file::Parse;
use super::scan;
use pagetide_quantity::Pages;

/// One zone's counters, in pages unless their name says otherwise.
///
/// Keys as printed, with the section as prefix where the name alone would be ambiguous: `node/nr_dirty` (per-node stats,
/// printed with the first populated zone), `cpu0/count` (page sets), `protection/2`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// NUMA node.
    pub node: u32,
    /// `DMA`, `DMA32`, `Normal`, `Movable`, `Device`.
    pub name: String,
    /// All values.
    pub counters: Counters,
}

impl Zone {
    /// Free pages, without those in per-CPU lists.
    pub fn free(&self) -> Option<Pages> {
        self.counters.get("free").map(Pages)
    }

    /// The watermarks min, low and high, boost included as the kernel prints them.
    pub fn watermarks(&self) -> Option<[Pages; 3]> {
        Some([
            Pages(self.counters.get("min")?),
            Pages(self.counters.get("low")?),
            Pages(self.counters.get("high")?),
        ])
    }

    /// Pages managed by the page allocator.
    pub fn managed(&self) -> Option<Pages> {
        self.counters.get("managed").map(Pages)
    }
}

/// All zones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zoneinfo {
    zones: Vec<Zone>,
}

impl Zoneinfo {
    /// The zones in the kernel's order.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// One zone.
    pub fn zone(&self, node: u32, name: &str) -> Option<&Zone> {
        self.zones
            .iter()
            .find(|zone| zone.node == node && zone.name == name)
    }
}

/// The sections of a zone, each with its own prefix.
#[derive(Clone, Copy)]
enum Section {
    Node,
    Zone,
    Cpu(usize),
}

impl Parse for Zoneinfo {
    fn parse(&mut self, text: &[u8]) {
        let mut count = 0;
        let mut rest = text;
        while let Some((header, body, after)) = next_zone(rest) {
            rest = after;
            let Some((node, name)) = zone_header(header) else {
                continue;
            };
            if self.zones.len() == count {
                self.zones.push(Zone::default());
            }
            let zone = &mut self.zones[count];
            count += 1;
            zone.node = node;
            if zone.name.as_bytes() != name {
                zone.name = String::from_utf8_lossy(name).into_owned();
            }
            parse_zone(&mut zone.counters, body);
        }
        self.zones.truncate(count);
    }
}

/// Splits off the first zone: its header line, its body and what follows.
fn next_zone(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let start = find_header(text, 0)?;
    let text = &text[start..];
    let line_end = text.iter().position(|&b| b == b'\n').unwrap_or(text.len());
    let end = find_header(text, line_end).unwrap_or(text.len());
    Some((&text[..line_end], &text[line_end..end], &text[end..]))
}

/// Where the next line that starts with `Node` begins, at or after `from`.
fn find_header(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    if at == 0 && text.starts_with(b"Node ") {
        return Some(0);
    }
    loop {
        at += text.get(at..)?.iter().position(|&b| b == b'\n')? + 1;
        if text.get(at..)?.starts_with(b"Node ") {
            return Some(at);
        }
    }
}

/// `Node 0, zone   Normal`, also the start of buddyinfo's lines.
pub(super) fn zone_header(line: &[u8]) -> Option<(u32, &[u8])> {
    let (node, zone) = scan::split_once(line, b',')?;
    let node = scan::number(scan::trim(node.strip_prefix(b"Node ")?))?;
    let mut words = scan::words(zone);
    if words.next()? != b"zone" {
        return None;
    }
    Some((u32::try_from(node).ok()?, words.next()?))
}

fn parse_zone(counters: &mut Counters, body: &[u8]) {
    let mut filler = counters.refill();
    let mut section = Section::Zone;
    for line in scan::lines(body) {
        let line = scan::trim(line);
        if line == b"per-node stats" {
            section = Section::Node;
            continue;
        }
        if line == b"pagesets" {
            continue;
        }
        if let Some(free) = line.strip_prefix(b"pages free") {
            section = Section::Zone;
            match scan::number(scan::trim(free)) {
                Some(value) => filler.put(b"", b"free", value),
                None => filler.skip(),
            }
            continue;
        }
        if let Some(list) = line.strip_prefix(b"protection: (") {
            let list = list.strip_suffix(b")").unwrap_or(list);
            for (at, word) in list.split(|&b| b == b',').enumerate() {
                match scan::number(scan::trim(word)) {
                    Some(value) => filler.put(b"protection/", digits(at).as_slice(), value),
                    None => filler.skip(),
                }
            }
            continue;
        }
        // Names may contain blanks (`vm stats threshold: 20`); the value is the last word.
        let Some(split) = line.iter().rposition(u8::is_ascii_whitespace) else {
            filler.skip();
            continue;
        };
        let name = scan::trim(&line[..split]);
        let name = name.strip_suffix(b":").unwrap_or(name);
        let Some(value) = scan::number(&line[split + 1..]) else {
            filler.skip();
            continue;
        };
        match (name, section) {
            (b"cpu", _) => section = Section::Cpu(usize::try_from(value).unwrap_or(usize::MAX)),
            (b"node_unreclaimable" | b"start_pfn", _) => {
                section = Section::Zone;
                filler.put(b"", name, value);
            }
            (_, Section::Node) => filler.put(b"node/", name, value),
            (_, Section::Zone) => filler.put(b"", name, value),
            (_, Section::Cpu(cpu)) => {
                let mut prefix = [0_u8; 24];
                let number = digits(cpu);
                let number = number.as_slice();
                prefix[..3].copy_from_slice(b"cpu");
                prefix[3..3 + number.len()].copy_from_slice(number);
                prefix[3 + number.len()] = b'/';
                filler.put(&prefix[..4 + number.len()], name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 1562
      nr_dirty     3
  pages free     3840
        boost    0
        min      10
        low      13
        high     16
        managed  3840
        protection: (0, 2991, 24010, 0, 0)
      nr_free_pages 3840
  pagesets
    cpu: 0
              count:    5
              batch:    1
  vm stats threshold: 6
    cpu: 1
              count:    7
              batch:    1
  vm stats threshold: 6
  node_unreclaimable:  0
  start_pfn:           1
Node 0, zone  Movable
  pages free     0
        min      32
        protection: (0, 0)
";

    #[test]
    fn zones_sections_and_cpus_keep_apart() {
        let mut info = Zoneinfo::default();
        info.parse(SAMPLE);
        assert_eq!(info.zones().len(), 2);
        let dma = info.zone(0, "DMA").unwrap();
        assert_eq!(dma.free(), Some(Pages(3840)));
        assert_eq!(dma.watermarks(), Some([Pages(10), Pages(13), Pages(16)]));
        assert_eq!(dma.counters.get("node/nr_dirty"), Some(3));
        assert_eq!(dma.counters.get("cpu1/count"), Some(7));
        assert_eq!(dma.counters.get("cpu0/vm stats threshold"), Some(6));
        assert_eq!(dma.counters.get("protection/1"), Some(2991));
        assert_eq!(dma.counters.get("start_pfn"), Some(1));
        assert_eq!(info.zone(0, "Movable").unwrap().watermarks(), None);
        assert_eq!(dma.counters.unparsed(), 0);
    }

    #[test]
    fn a_second_text_replaces_the_first() {
        let mut info = Zoneinfo::default();
        info.parse(SAMPLE);
        info.parse(b"Node 1, zone Normal\n  pages free 9\n");
        assert_eq!(info.zones().len(), 1);
        assert_eq!(info.zone(1, "Normal").unwrap().free(), Some(Pages(9)));
    }

    #[test]
    fn this_kernels_zones_have_watermarks() {
        let text = std::fs::read("/proc/zoneinfo").unwrap();
        let mut info = Zoneinfo::default();
        info.parse(&text);
        assert!(!info.zones().is_empty());
        for zone in info.zones() {
            assert!(zone.watermarks().is_some(), "{zone:?}");
            assert_eq!(zone.counters.unparsed(), 0, "{zone:?}");
        }
    }
}
