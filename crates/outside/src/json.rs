//! Writes JSON that can be parsed again.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Serializes a value as JSON, and checks that the result can be parsed again. For example, a number that is not finite
/// would be written as `null`, which a reader refuses.
///
/// # Errors
/// Fails if the value cannot be serialized, or if the result cannot be parsed.
pub fn readable_json<T: Serialize + DeserializeOwned>(value: &T) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_vec(value)?;
    serde_json::from_slice::<T>(&json)?;
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_be_read_back_is_not_written() {
        assert_eq!(readable_json(&1.5_f64).unwrap(), b"1.5");
        for number in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(readable_json(&number).is_err(), "{number}");
        }
    }
}
