//! Verdicts compared with other implementations, with simulations, and with their mathematical properties.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod bisect;
mod calibration;
mod common;
mod factorial;
mod golden;
mod properties;
mod sequential;
mod squeeze;
mod ties;
mod verdicts;
mod waiting;
