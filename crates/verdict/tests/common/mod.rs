//! Simulated campaigns, shared by the calibration test and the `calibrate` example.

pub mod campaign;
pub mod noise;
pub mod suites;
