//! Forms in which a file can contain references.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Form in which a file contains references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// One page index per line, in the order of the references.
    Text,
    /// `page count` per line, in ascending order of pages.
    Counts,
    /// The compact binary form, see [`write_binary`](crate::write_binary).
    Binary,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Counts => "counts",
            Self::Binary => "binary",
        })
    }
}
