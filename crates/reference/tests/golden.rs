//! The strings are equal, to the last reference, to those of a second implementation in another language.
//!
//! That implementation is `golden/make.py`, which created the files next to it. A difference here means that this
//! crate, `libm` or the platform has changed a string that records rely on: correct that, or give the strings a new
//! name.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests may unwrap as tests do"
)]

use std::fmt::{Display, Write};

use pagetide_reference::Pattern;
use sha2::{Digest, Sha256};

/// SHA-256 in hex of `items`, with one item per line.
fn digest(items: impl Iterator<Item = impl Display>) -> String {
    let mut hash = Sha256::new();
    for item in items {
        hash.update(format!("{item}\n"));
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// The fields of every line of a golden file, without comment lines.
fn golden(file: &str) -> impl Iterator<Item = Vec<&str>> {
    file.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(' ').collect())
}

#[test]
fn counts_of_smooth_sin_equal_the_formula() {
    let mut checked = 0;
    for fields in golden(include_str!("golden/counts.txt")) {
        let [as_written, pages, refs, total, expected] = fields[..] else {
            panic!("{fields:?}")
        };
        let (pages, refs) = (pages.parse().unwrap(), refs.parse().unwrap());
        let as_written = as_written.parse().unwrap();
        for pattern in [
            Pattern::SmoothSin { as_written },
            Pattern::SmoothSinRandom { as_written },
        ] {
            let counts = pattern.counts(pages, refs, 0).unwrap();
            let lines = counts.iter().enumerate();
            assert_eq!(
                digest(lines.map(|(page, count)| format!("{page} {count}"))),
                expected,
                "{fields:?}"
            );
            assert_eq!(pattern.total(pages, refs).unwrap().to_string(), total);
        }
        checked += 1;
    }
    assert_eq!(checked, 32);
}

#[test]
fn strings_equal_those_of_the_second_implementation() {
    let mut checked = 0;
    for fields in golden(include_str!("golden/strings.txt")) {
        let [pattern, pages, refs, seed, expected] = fields[..] else {
            panic!("{fields:?}")
        };
        let pattern: Pattern = pattern.parse().unwrap();
        let references = pattern
            .references(
                pages.parse().unwrap(),
                refs.parse().unwrap(),
                seed.parse().unwrap(),
            )
            .unwrap();
        assert_eq!(digest(references), expected, "{fields:?}");
        checked += 1;
    }
    assert_eq!(checked, 60);
}
