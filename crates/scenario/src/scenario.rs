//! One file per scenario.

pub(crate) mod patterns;
