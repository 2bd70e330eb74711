//! The short form of identities.

/// Number of digits to which identities and digests are shortened.
const DIGITS: usize = 12;

/// Returns the first digits of an identity or digest, as many as lists display.
pub fn short(id: &str) -> &str {
    id.get(..DIGITS).unwrap_or(id)
}
