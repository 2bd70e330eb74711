//! The workloads for a patch whose author names none.

use crate::campaign::Campaign;
use crate::file::{self, FileError, Vocabulary};

/// The campaign file, which stands beside the others.
const FILE: &str = include_str!("../../../campaigns/screening.toml");

/// The screening campaign. Its only variant stands for the source without patches.
pub fn screening(vocabulary: &Vocabulary) -> Result<Campaign, FileError> {
    file::parse("campaigns/screening.toml", FILE, vocabulary)
}
