//! Checksums of the rows of the index.
//!
//! Each row stores a checksum of all its values. Every step of the computation is reversible, so a change of a single
//! number, or of one 8-byte word of a text, always changes the checksum. It detects damage and accidental changes, not
//! forgery. Against forgery each record has a digest, and `pagetide store verify` compares records and index.

/// State of a checksum computation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proof(u64);

impl Proof {
    /// Creates the initial state of a computation: the ASCII codes of `pagetide`.
    pub(crate) const fn new() -> Self {
        Self(0x7061_6765_7469_6465)
    }

    /// Returns the state after adding a number. Different numbers added to the same state give different states.
    pub(crate) const fn number(self, number: u64) -> Self {
        // An odd multiplier: the increment of SplitMix64, 2^64 divided by the golden ratio (Steele, Lea, Flood 2014,
        // "Fast splittable pseudorandom number generators").
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ (mixed >> 32))
    }

    /// Returns the state after adding a string.
    pub(crate) fn text(self, text: &str) -> Self {
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        let mut proof = self.number(text.len() as u64);
        for word in words {
            proof = proof.number(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        proof.number(u64::from_le_bytes(last))
    }

    /// Returns the checksum as a signed number, as stored in the index.
    pub(crate) const fn kept(self) -> i64 {
        self.0.cast_signed()
    }
}

/// Returns the checksum of texts that are stored once in the index and used by many rows.
pub(crate) fn of_texts(texts: &[&str]) -> u64 {
    texts
        .iter()
        .fold(Proof::new(), |proof, text| proof.text(text))
        .0
}

/// Returns the checksum of a metric's value in the row `row`. `definition` is the checksum of the metric's scenario and
/// name, and of its unit, direction and whether it is primary. `absent` is the reason why there is no value.
pub(crate) fn of_value(row: i64, definition: u64, value: Option<f64>, absent: Option<&str>) -> i64 {
    Proof::new()
        .number(row.cast_unsigned())
        .number(definition)
        .number(u64::from(value.is_some()))
        // SQLite does not store the sign of zero.
        .number((value.unwrap_or_default() + 0.0).to_bits())
        .text(absent.unwrap_or_default())
        .kept()
}

/// Error: a row of the index does not match its checksum.
#[derive(Clone, Debug, thiserror::Error)]
#[error("what it says of record {id} is not what it was told")]
pub(crate) struct Disagreement {
    /// ID of the record, or `in row N` if the ID cannot be read.
    pub(crate) id: String,
}

impl From<Disagreement> for rusqlite::Error {
    fn from(disagreement: Disagreement) -> Self {
        Self::FromSqlConversionFailure(0, rusqlite::types::Type::Integer, Box::new(disagreement))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_one_value_changes_the_proof() {
        let all = [
            of_value(1, 2, Some(3.0), None),
            of_value(2, 2, Some(3.0), None),
            of_value(1, 3, Some(3.0), None),
            of_value(1, 2, Some(3.5), None),
            of_value(1, 2, None, None),
            of_value(1, 2, None, Some("why")),
            of_value(1, 2, Some(0.0), None),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one), "{place}");
        }
        assert_ne!(of_texts(&["ab", "c"]), of_texts(&["a", "bc"]));
        assert_ne!(of_texts(&["12345678"]), of_texts(&["12345678\0"]));
    }
}
