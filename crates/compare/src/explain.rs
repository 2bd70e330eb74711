//! Why: mechanisms ranked by how much of a difference in time they account for, where a time surely differs ([`claims()`]).
//!
//! Time comes from the traces of observed passes, part by part ([`pagetide_probe::meaning::Part`]); each part's difference
//! is split into counts and costs ([`decompose`]) and given to mechanisms ([`effects`]), seed by seed. What is sure
//! in its sign over the seeds is told; counters of the same trials are the evidence ([`evidence`]). No line stands without evidence, and what
//! nothing speaks for is called unexplained, so that all lines add up to the difference.
//!
//! Everything here works on plain data ([`Account`]); [`explain`] makes it from records.

mod account;
mod claims;
pub mod decompose;
mod effects;
mod evidence;
mod explanation;
mod gather;
mod mechanism;

pub use account::{Account, Amounts, CpuHolder, ObservedPass, PassAccount, SiteTime};
pub use claims::{Claim, claims};
pub use evidence::{Evidence, LIST_MOVES, Reading, Source};
pub use explanation::{Answer, Basis, Explanation, Finding, Lead};
pub use gather::{CellExplanation, explain};
pub use mechanism::Mechanism;
