//! Tests of the hunt on a synthetic kernel: a pure function from a workload to counters, with faults that only rare
//! combinations show.

mod goals;
mod kernel;
mod search;
mod shrink;
mod space;
