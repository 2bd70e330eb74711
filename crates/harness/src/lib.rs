//! The environment of a scenario in any arena: settings are applied, read back and restored; counters are read before
//! and after; the workload is supervised; swap is set up; and the trial is checked for whether it did what it claims.
//!
//! Some machines end with the trial, others continue ([`MachineFate`]). On a machine that continues, nothing global is
//! written that cannot be restored: guards restore what they changed when dropped, even if a trial ends early.
//!
//! This crate does not depend on guests, emulators or reports. Begin reading in [`settings`], then [`judgement`].

pub mod counters;
pub mod error;
pub mod fate;
pub mod judgement;
pub mod log;
pub mod settings;
pub mod supervise;
pub mod swap;

pub use error::HarnessError;
pub use fate::MachineFate;
