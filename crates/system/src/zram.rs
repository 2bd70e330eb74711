//! Memory statistics of a zram device: `mm_stat` (Documentation/admin-guide/blockdev/zram.rst).

use std::fs;
use std::path::Path;

use crate::counters::{Counters, Syntax};

/// Folder in sysfs of the first zram device.
pub const FIRST: &str = "/sys/block/zram0";

/// Names of the columns of `mm_stat`; older kernels print fewer columns.
pub const COLUMNS: &[&str] = &[
    "orig_data_size",
    "compr_data_size",
    "mem_used_total",
    "mem_limit",
    "mem_used_max",
    "same_pages",
    "pages_compacted",
    "huge_pages",
    "huge_pages_since",
];

/// Reads the current memory statistics of the zram device with this folder in sysfs; empty if there is no such device.
pub fn of(device: &Path) -> Counters {
    let mut counters = Counters::new();
    counters.parse(
        &fs::read(device.join("mm_stat")).unwrap_or_default(),
        Syntax::Columns(COLUMNS),
    );
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zram_with_fewer_columns_has_fewer_keys_and_no_zeros_in_their_place() {
        let mut old = Counters::new();
        old.parse(
            b"  4096  74  12288  0  12288  1  0  0\n",
            Syntax::Columns(COLUMNS),
        );
        assert_eq!(old.get("compr_data_size"), Some(74));
        assert_eq!(old.get("huge_pages_since"), None);
    }
}
