//! Reading numbers and words out of bytes without allocating.

/// The non-empty lines of a text.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// The words of a line: what stands between blanks.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// An unsigned decimal number that fills the whole word, or `None` (also when it exceeds 64 bits).
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for &byte in word {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A decimal number with an optional minus sign.
pub(crate) fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(rest) => 0_i64.checked_sub_unsigned(number(rest)?),
        None => i64::try_from(number(word)?).ok(),
    }
}

/// A number with up to two decimals, in hundredths: `0.12` is 12, `3` is 300.
pub(crate) fn hundredths(word: &[u8]) -> Option<u64> {
    let dot = word.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match dot {
        Some(at) => (&word[..at], &word[at + 1..]),
        None => (word, &b""[..]),
    };
    let fraction = match fraction.len() {
        0 => 0,
        1 => number(fraction)? * 10,
        _ => number(&fraction[..2])?,
    };
    number(whole)?.checked_mul(100)?.checked_add(fraction)
}

/// Splits at the first occurrence of `separator`, which belongs to neither part.
pub(crate) fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&byte| byte == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_exceeds_64_bits_is_no_number() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"12a"), None);
    }

    #[test]
    fn signed_numbers_reach_both_ends() {
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(signed(b"--1"), None);
    }

    #[test]
    fn hundredths_keep_two_decimals() {
        assert_eq!(hundredths(b"0.12"), Some(12));
        assert_eq!(hundredths(b"7.5"), Some(750));
        assert_eq!(hundredths(b"100"), Some(10_000));
        assert_eq!(hundredths(b"1.x2"), None);
    }
}
