//! Shortens IDs and digests for lists.

/// Number of digits to which IDs and digests are shortened.
const DIGITS: usize = 12;

/// Returns the first 12 digits of an ID or digest; a shorter text unchanged.
pub fn short(id: &str) -> &str {
    id.get(..DIGITS).unwrap_or(id)
}
