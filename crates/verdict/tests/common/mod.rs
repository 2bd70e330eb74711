//! Simulated campaigns, shared by the calibration test and the example `false_alarms`.

pub mod campaign;
pub mod noise;
pub mod suites;
