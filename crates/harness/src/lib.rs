//! What surrounds a scenario in any arena: settings applied, read back and restored; counters before and after; supervision;
//! swap set up; and the judgement whether the trial did what it claims.
//!
//! Some machines end with the trial, others continue ([`MachineFate`]). On a machine that continues, nothing global is written
//! without a way back: guards restore what they changed when dropped, also if a trial ends early.
//!
//! This crate knows nothing of guests, emulators or reports. Begin reading in [`settings`], then [`judgement`].

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
