//! Suggestions for mistyped names.

/// The candidate most like `text`, if any is near enough to be what was meant. Case, spaces and underscores are ignored.
///
/// Likeness is Damerau-Levenshtein normalised by length; below 0.6 a suggestion confuses more than it helps.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let plain = |name: &str| name.to_lowercase().replace([' ', '_'], "-");
    let text = plain(text);
    candidates
        .into_iter()
        .map(|name| {
            (
                strsim::normalized_damerau_levenshtein(&text, &plain(name)),
                name,
            )
        })
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

/// The nearest candidate if it differs from `text` by one or two typing errors; `None` if it is equal.
pub fn slip<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(text, candidates)
        .filter(|near| near != text && strsim::damerau_levenshtein(text, near) <= 2)
}

/// Advice for an unknown name: the nearest known one, or all of them.
pub fn hint<'a>(text: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(text, names.clone()) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => format!("use one of {}", names.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 2] = ["debian:bookworm", "smooth-sin"];

    #[test]
    fn a_slip_is_mended_and_nonsense_is_not() {
        assert_eq!(
            nearest("debain:bookwrom", WORDS),
            Some("debian:bookworm".into())
        );
        assert_eq!(nearest("Smooth_sin", WORDS), Some("smooth-sin".into()));
        assert_eq!(nearest("xyz", WORDS), None);
    }

    #[test]
    fn only_another_name_within_two_letters_is_a_slip() {
        assert_eq!(slip("smoth-sin", WORDS), Some("smooth-sin".into()));
        assert_eq!(slip("smooth-sin", WORDS), None);
        assert_eq!(slip("smooth-cos-tan", WORDS), None);
    }

    #[test]
    fn without_a_near_name_all_are_listed() {
        assert_eq!(
            hint("smooth sine", WORDS.into_iter()),
            "did you mean \"smooth-sin\"?"
        );
        assert_eq!(
            hint("?", WORDS.into_iter()),
            "use one of debian:bookworm, smooth-sin"
        );
    }
}
