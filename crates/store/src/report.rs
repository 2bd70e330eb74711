//! Results of rebuilding or verifying a store.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A damaged record file or campaign file, or a damaged index entry of a record.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DamagedFile {
    /// Path of the damaged record or campaign file; that of the index if only the index is damaged.
    #[serde(serialize_with = "shown")]
    pub path: PathBuf,
    /// The damage, in one sentence.
    pub why: String,
    /// True if the damage is in the index and can be repaired with `rebuild`; the record file is then undamaged.
    pub index: bool,
}

/// Serialises a path as text. Bytes that are not valid UTF-8 are replaced, because JSON strings must be Unicode.
pub(crate) fn shown<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Result of rebuilding or verifying a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StoreReport {
    /// Number of undamaged records.
    pub records: u64,
    /// Damaged files. Rebuilding and verifying do not move or change them.
    pub damaged: Vec<DamagedFile>,
}

impl StoreReport {
    /// Returns text for the user: the number of undamaged records, then one line for each damaged file. `done` is what
    /// is said of the undamaged records, such as "whole".
    pub fn text(&self, done: &str) -> String {
        let mut text = format!("{} records are {done}\n", self.records);
        for damaged in &self.damaged {
            // If only the index is damaged, the record is fine and must not be moved away.
            let remedy = if damaged.index { "" } else { "; move it away" };
            let (path, why) = (damaged.path.display(), &damaged.why);
            let _ = writeln!(text, "damaged: {path} ({why}){remedy}");
        }
        text
    }
}
