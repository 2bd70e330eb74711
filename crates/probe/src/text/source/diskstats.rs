//! `/proc/diskstats`: bytes that the block layer read from and wrote to each device
//! (Documentation/admin-guide/iostats.rst).

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of `/proc/diskstats` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "diskstats",
    of: Owner::Machine,
    files: &[("", "proc/diskstats")],
    syntax: Syntax::Disks,
    over_time: &[],
    keys: keys! {
        Counter Bytes "zram0 read" "bytes read from zram";
        Counter Bytes "zram0 written" "bytes written to zram";
        Counter Bytes "nullb0 read" "bytes read from the first simulated solid-state disk";
        Counter Bytes "nullb0 written" "bytes written to the first simulated solid-state disk";
        Counter Bytes "nullb1 read" "bytes read from the second simulated solid-state disk";
        Counter Bytes "nullb1 written" "bytes written to the second simulated solid-state disk";
        Counter Bytes "nbd0 read" "bytes read from the first simulated rotating disk";
        Counter Bytes "nbd0 written" "bytes written to the first simulated rotating disk";
        Counter Bytes "nbd1 read" "bytes read from the second simulated rotating disk";
        Counter Bytes "nbd1 written" "bytes written to the second simulated rotating disk";
    },
};
