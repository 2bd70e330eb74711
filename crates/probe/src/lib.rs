//! Observers of a trial: tracepoints, /proc and /sys counters, page maps, block I/O; one file per source.
