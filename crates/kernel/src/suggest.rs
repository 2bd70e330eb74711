//! The nearest known word to a mistyped one.

/// The candidate most like `text`, if any is near enough to be what was meant.
///
/// Likeness is Damerau-Levenshtein normalised by length; below 0.6 a suggestion confuses more than it helps.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::normalized_damerau_levenshtein(text, candidate),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_mended_and_nonsense_is_not() {
        let words = ["debian:bookworm", "debian:sid"];
        assert_eq!(nearest("debain:bookwrom", words), Some("debian:bookworm"));
        assert_eq!(nearest("xyz", words), None);
    }
}
