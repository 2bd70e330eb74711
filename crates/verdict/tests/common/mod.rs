//! Simulated campaigns: what the calibration test and the `calibrate` example share.

pub mod campaign;
pub mod noise;
pub mod suites;
