//! Memory workloads: one file per scenario, and what all of them share.
