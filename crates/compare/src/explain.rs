//! Explains differences in time: mechanisms ranked by their share of a difference, for times that differ significantly
//! ([`claims()`]).
//!
//! Time comes from the traces of observed passes, by part ([`pagetide_probe::meaning::Part`]). The difference of each
//! part is split into counts and costs ([`decompose`]) and attributed to mechanisms ([`effects`]), separately for each
//! seed. Only effects whose interval over the seeds excludes zero are reported; counters of the same trials are the
//! evidence ([`evidence`]). Every line has evidence. Time without evidence is called unexplained, so that all lines add
//! up to the difference.
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
pub use explanation::{Answer, Basis, Explanation, Lead, MechanismShare};
pub use gather::{CellExplanation, explain, explain_with_accounts};
pub use mechanism::Mechanism;
