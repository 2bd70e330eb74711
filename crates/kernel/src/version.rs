//! Comparison of Debian versions (Debian Policy 5.6.12, and `deb-version(7)`).

use std::cmp::Ordering;

/// Compares two Debian versions: epoch, upstream version, revision.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a_epoch, a_rest) = epoch(a);
    let (b_epoch, b_rest) = epoch(b);
    let (a_upstream, a_revision) = a_rest.rsplit_once('-').unwrap_or((a_rest, ""));
    let (b_upstream, b_revision) = b_rest.rsplit_once('-').unwrap_or((b_rest, ""));
    number(a_epoch, b_epoch)
        .then_with(|| part(a_upstream, b_upstream))
        .then_with(|| part(a_revision, b_revision))
}

fn epoch(version: &str) -> (&str, &str) {
    version.split_once(':').unwrap_or(("0", version))
}

/// Compares strings of digits as numbers of any length.
fn number(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Compares two parts of a version: alternately runs of non-digits, in Debian's character order, and runs of digits, as
/// numbers.
fn part(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (a_word, a_rest) = split(a, |c| !c.is_ascii_digit());
        let (b_word, b_rest) = split(b, |c| !c.is_ascii_digit());
        let (a_digits, a_next) = split(a_rest, |c| c.is_ascii_digit());
        let (b_digits, b_next) = split(b_rest, |c| c.is_ascii_digit());
        let order = words(a_word, b_word).then_with(|| number(a_digits, b_digits));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (a_next, b_next);
    }
    Ordering::Equal
}

fn split(text: &str, accept: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !accept(c)).unwrap_or(text.len()))
}

/// Compares runs of non-digits: `~` sorts before everything, even the end. The end sorts before letters, and letters
/// before other characters.
fn words(a: &str, b: &str) -> Ordering {
    let rank = |c: Option<char>| match c {
        Some('~') => (0, '~'),
        None => (1, ' '),
        Some(c) if c.is_ascii_alphabetic() => (2, c),
        Some(c) => (3, c),
    };
    let (mut a, mut b) = (a.chars(), b.chars());
    loop {
        let (x, y) = (a.next(), b.next());
        let order = rank(x).cmp(&rank(y));
        if order != Ordering::Equal || x.is_none() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_sort_as_dpkg_sorts_them() {
        // Checked against `dpkg --compare-versions`.
        let ascending = [
            "6.1.99-1",
            "6.1.176-1",
            "6.1.192-2",
            "6.1.192-10",
            "6.12.9~rc1-1",
            "6.12.9-1~bpo12+1",
            "6.12.9-1",
            "6.12.117-1~deb12u1",
            "6.12.117-1",
            "7.2.13-1",
            "1:1.0",
        ];
        for pair in ascending.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(compare("6.012-1", "6.12-1"), Ordering::Equal);
        assert_eq!(compare("6.12", "6.12-0"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn any_two_versions_have_one_order(a in "[0-9a-z.+~:-]{0,12}", b in "[0-9a-z.+~:-]{0,12}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &a), Ordering::Equal);
        }
    }
}
