//! The environment of a scenario in any arena. This crate applies, verifies and restores settings, sets up swap, reads
//! counters before and after the scenario, supervises the workload, and checks that the trial did what it claims.
//!
//! Some machines end with the trial, others continue ([`MachineFate`]). On a machine that continues, nothing global is
//! written that cannot be restored: guards restore what they changed when dropped, even if a trial ends early.
//!
//! This crate does not depend on guests, emulators or reports. Begin reading in [`sequence`], then [`settings`]
//! and [`judgement`].

pub mod counters;
pub mod error;
pub mod fate;
pub mod judgement;
pub mod log;
pub mod peak;
pub mod range;
pub mod sequence;
pub mod settings;
pub mod supervise;
pub mod swap;

pub use error::HarnessError;
pub use fate::MachineFate;
