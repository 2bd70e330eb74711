//! Tests of the hunt on a synthetic kernel: a pure function from a workload to counters, with faults that only rare
//! combinations show.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]
#![allow(
    clippy::too_many_lines,
    reason = "the synthetic kernel is one list of rules"
)]

mod case;
mod executed;
mod goals;
mod kernel;
mod search;
mod shrink;
mod space;
