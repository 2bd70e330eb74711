//! `mm_stat` of a zram device (Documentation/admin-guide/blockdev/zram.rst).

use pagetide_system::{Syntax, zram};

use super::{Owner, Source, keys};

/// Description of `mm_stat` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "zram",
    of: Owner::Zram,
    files: &[("", "mm_stat")],
    syntax: Syntax::Columns(zram::COLUMNS),
    over_time: &[],
    keys: keys! {
        Gauge Bytes "orig_data_size" "data stored, before compression";
        Gauge Bytes "compr_data_size" "data stored, compressed";
        Gauge Bytes "mem_used_total" "memory used, the allocator's overhead included";
        Gauge Bytes "mem_limit" "the most it may use; 0 is no limit";
        Gauge Bytes "mem_used_max" "the most it has used";
        Gauge Pages "same_pages" "pages of one repeated word, stored without memory";
        Counter Pages "pages_compacted" "pages freed by compacting the store";
        Gauge Pages "huge_pages" "pages that do not compress, now";
        Counter Pages "huge_pages_since" "pages that did not compress, since the device was set up";
    },
};
