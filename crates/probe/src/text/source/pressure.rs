//! Pressure stall information (Documentation/accounting/psi.rst): total time that tasks waited for a resource.

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of the pressure files and their numbers.
pub(super) static SOURCE: Source = Source {
    name: "pressure",
    of: Owner::Machine,
    files: &[
        ("memory-", "proc/pressure/memory"),
        ("io-", "proc/pressure/io"),
        ("cpu-", "proc/pressure/cpu"),
    ],
    syntax: Syntax::Pressure,
    over_time: &[],
    keys: keys! {
        Counter Nanos "memory-some" "time in which some task waited for memory";
        Counter Nanos "memory-full" "time in which all tasks waited for memory";
        Counter Nanos "io-some" "time in which some task waited for I/O";
        Counter Nanos "io-full" "time in which all tasks waited for I/O";
        Counter Nanos "cpu-some" "time in which some task waited for a CPU";
        Counter Nanos "cpu-full" "time in which all tasks waited for a CPU";
    },
};
