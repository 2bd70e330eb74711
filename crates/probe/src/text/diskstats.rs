//! `/proc/diskstats`: what each block device did (Documentation/admin-guide/iostats.rst).

use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::file::Parse;
use super::scan;

/// The names of the numbers after the device's name: 11 since 2.6, 15 since 4.18 (discards), 17 since 5.5 (flushes).
const COLUMNS: [&str; 17] = [
    "reads",
    "reads_merged",
    "sectors_read",
    "ms_reading",
    "writes",
    "writes_merged",
    "sectors_written",
    "ms_writing",
    "in_flight",
    "ms_busy",
    "ms_weighted",
    "discards",
    "discards_merged",
    "sectors_discarded",
    "ms_discarding",
    "flushes",
    "ms_flushing",
];

/// One device's counters since boot; sectors are 512 bytes, times milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskActivity {
    /// Major device number.
    pub major: u32,
    /// Minor device number.
    pub minor: u32,
    /// The device's name, as under `/sys/block` or a partition of it.
    pub name: String,
    /// `reads`, `sectors_read`, `writes`, `sectors_written`, …; only those the kernel prints.
    pub counters: Counters,
}

/// All block devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diskstats {
    disks: Vec<DiskActivity>,
}

impl Diskstats {
    /// The devices in the kernel's order.
    pub fn disks(&self) -> &[DiskActivity] {
        &self.disks
    }

    /// One device by name.
    pub fn disk(&self, name: &str) -> Option<&DiskActivity> {
        self.disks.iter().find(|disk| disk.name == name)
    }
}

impl Parse for Diskstats {
    fn parse(&mut self, text: &[u8]) {
        let mut count = 0;
        for line in scan::lines(text) {
            let mut words = scan::words(line);
            let mut device = || u32::try_from(words.next().and_then(scan::number)?).ok();
            let (Some(major), Some(minor)) = (device(), device()) else {
                continue;
            };
            let Some(name) = words.next() else {
                continue;
            };
            if self.disks.len() == count {
                self.disks.push(DiskActivity::default());
            }
            let disk = &mut self.disks[count];
            count += 1;
            (disk.major, disk.minor) = (major, minor);
            if disk.name.as_bytes() != name {
                disk.name = String::from_utf8_lossy(name).into_owned();
            }
            let mut filler = disk.counters.refill();
            for (column, word) in COLUMNS.iter().zip(words) {
                match scan::number(word) {
                    Some(value) => filler.put(b"", column.as_bytes(), value),
                    None => filler.skip(),
                }
            }
        }
        self.disks.truncate(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernels_line_lacks_discards_instead_of_showing_none() {
        let mut stats = Diskstats::default();
        stats.parse(b"   8       0 sda 10 1 80 5 20 2 160 9 0 12 14\n 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n");
        let sda = stats.disk("sda").unwrap();
        assert_eq!(sda.counters.get("sectors_written"), Some(160));
        assert_eq!(sda.counters.get("discards"), None);
        assert_eq!(
            stats.disk("vda").unwrap().counters.get("ms_flushing"),
            Some(17)
        );
    }
}
