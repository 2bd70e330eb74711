//! `bd_stat` of a zram device: pages on its backing device, and pages read from and written to it
//! (Documentation/admin-guide/blockdev/zram.rst).

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of `bd_stat` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "writeback",
    of: Owner::Device,
    files: &[("", "bd_stat")],
    syntax: Syntax::Columns(&["bd_count", "bd_reads", "bd_writes"]),
    over_time: &[],
    keys: keys! {
        Gauge Pages "bd_count" "pages of zram that are on its backing device";
        Counter Pages "bd_reads" "pages read from the backing device";
        Counter Pages "bd_writes" "pages written to the backing device";
    },
};
