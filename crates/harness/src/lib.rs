//! What surrounds a scenario in any arena: settings applied, read back and restored; counters before and after; supervision;
//! swap set up; and the judgement whether the trial did what it claims.
//!
//! Some machines end with the trial, others go on ([`Afterwards`]). On one that goes on nothing global is written without a
//! way back: what a guard changed, it restores when dropped, also where a trial ends early.
//!
//! This crate knows nothing of guests, emulators or reports. Begin reading in [`settings`], then [`judgement`].

pub mod afterwards;
pub mod counters;
pub mod error;
pub mod judgement;
pub mod log;
pub mod settings;
pub mod supervise;
pub mod swap;

pub use afterwards::Afterwards;
pub use error::HarnessError;
