//! The order of kernel versions.

use std::cmp::Ordering;

/// Compares two kernel releases as versions: `6.2` before `6.12`, `7.0-rc1` before `7.0`.
pub fn by_version(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<Part> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let digit = first.is_ascii_digit();
            let end = rest
                .find(|c: char| c.is_ascii_digit() != digit)
                .unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            parts.push(if digit {
                Part::Number(part.parse().unwrap_or(u64::MAX))
            } else if part.starts_with("-rc") {
                Part::Candidate
            } else {
                Part::Text(part.to_owned())
            });
            rest = after;
        }
        parts.push(Part::End);
        parts
    };
    parts(a).cmp(&parts(b))
}

/// A part of a kernel release. Variants of this enum are listed in sort order: of two releases with equal beginnings,
/// the one whose next part is listed first is older.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// `-rc`, so that a release candidate sorts before the release.
    Candidate,
    /// End of a release; sorts before any further text or digits.
    End,
    /// Text that is neither digits nor `-rc`.
    Text(String),
    /// Value of consecutive digits.
    Number(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_as_versions() {
        let mut releases = [
            "6.12.9",
            "7.0",
            "6.2.0",
            "6.12.10",
            "7.0-rc10",
            "7.0-rc2",
            "6.12.10-cloud-amd64",
        ];
        releases.sort_by(|a, b| by_version(a, b));
        assert_eq!(
            releases,
            [
                "6.2.0",
                "6.12.9",
                "6.12.10",
                "6.12.10-cloud-amd64",
                "7.0-rc2",
                "7.0-rc10",
                "7.0"
            ]
        );
    }
}
